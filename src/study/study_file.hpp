// StudyFile: what a study's TOML file says, checked as far as the file alone allows. Read by every study command; the
// format is docs/studies.md and docs/study.schema.json.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "study/factor.hpp"

namespace ergometer {

enum class DesignKind { full, one_at_a_time, fraction, cells };
[[nodiscard]] const char* to_word(DesignKind);
[[nodiscard]] std::optional<DesignKind> design_kind_from(std::string_view word);

// One combination of levels, or a part of one: indices into a factor's levels by the factor's index.
using LevelChoice = std::map<std::size_t, std::vector<std::size_t>>;

struct DesignSpec {
  DesignKind kind = DesignKind::full;
  std::vector<std::size_t> base;     // a level a factor; of one_at_a_time
  int fraction = 2;                  // 1/fraction of the full design
  std::vector<LevelChoice> cells;    // of `cells`; each names every factor, one level each
  std::vector<LevelChoice> exclude;  // a cell that fits one of these is left out
  int line = 0;
};

// Repeats a cell until the 95 % interval of a metric's mean is narrow enough.
struct RepeatUntil {
  std::string metric;
  double interval = 0;  // half-width over mean
  int at_most = 0;      // repetitions
};

struct CoolDown {
  Nanos time{0};                        // at least so long between two runs
  std::optional<double> below_celsius;  // and until every GPU is cooler
  Nanos at_most = std::chrono::minutes(10);
};

enum class OnFailure { go_on, retry, stop };

struct RunRules {
  int repetitions = 1;
  std::optional<RepeatUntil> until;
  int warm_up = 0;  // runs before each block that count for nothing
  CoolDown cool_down;
  bool randomise = true;
  std::optional<std::uint64_t> seed;  // unset: drawn once and kept in the plan
  std::optional<Nanos> time_out;      // of one run
  OnFailure on_failure = OnFailure::go_on;
  std::optional<Nanos> time_budget;
  std::optional<double> energy_budget_j;
  std::vector<std::string> measure;  // options for `ergometer run`
};

struct ValidityRules {
  double coverage = 0.95;                       // least share of the run that energy readings cover
  int readings = 2;                             // least number of energy or power readings of a device
  double throttle = 0.05;                       // most share of the run slowed down by heat or the supply
  bool foreign_processes = false;               // whether others may use the GPUs
  std::optional<double> lowest_start_celsius, highest_start_celsius;
  std::optional<double> start_spread_celsius;   // farthest from the block's first run
};

enum class ExecutorKind { here, mpirun, srun, sbatch };
[[nodiscard]] const char* to_word(ExecutorKind);
[[nodiscard]] std::optional<ExecutorKind> executor_kind_from(std::string_view word);

struct Placement {
  ExecutorKind kind = ExecutorKind::here;
  std::vector<std::string> options;  // for mpirun, srun or sbatch
  std::string constraint;            // template; of the nodes of an sbatch job
  bool job_per_block = false;        // one job a block instead of one a cell
};

struct StudyFile {
  std::string name, description;
  std::vector<std::string> command;  // words with {NAME} in them
  bool words_split = true;           // a word that is only {NAME} may become several; false if the command was a list
  std::map<std::string, std::string> parameters, environment;
  // Parameters that hold where a factor has a level: factor -> level -> name -> text.
  std::map<std::string, std::map<std::string, std::map<std::string, std::string>>> by_level;
  std::vector<Factor> factors;
  std::vector<int> gpus;  // those that may be used and set, by index; empty: the visible ones
  DesignSpec design;
  RunRules runs;
  ValidityRules validity;
  Placement where;
};

// What the command line changes about a file: kept in the plan.
struct StudyOverrides {
  std::map<std::string, std::string> parameters;
  std::map<std::string, std::vector<std::string>> levels;  // of a factor, or of a parameter that becomes one; none: the factor goes
  std::optional<DesignKind> design;
  std::optional<ExecutorKind> executor;
  bool operator==(const StudyOverrides&) const = default;
  [[nodiscard]] bool empty() const { return *this == StudyOverrides{}; }
};

// Errors (invalid_argument, corrupt) name `source` and the line, the nearest known name, and what to write instead.
[[nodiscard]] Result<StudyFile> parse_study_file(std::string_view text, const std::string& source,
                                                 const StudyOverrides& overrides = {});

// The factor of this name, or nullptr.
[[nodiscard]] const Factor* find_factor(const StudyFile& file, std::string_view name);

}  // namespace ergometer
