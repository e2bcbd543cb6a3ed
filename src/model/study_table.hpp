// StudyTable: the results of a study as one value: its factors, its cells, its runs with their metrics and verdicts.
// Made from a study's folder or by an import; read by the analysis and by every report.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/warning.hpp"

namespace ergometer {

// One thing that the study varies.
struct StudyFactor {
  std::string name;                           // "power_limit", "batch", ...
  std::string unit;                           // "W", "MHz", "" for a plain number or a name
  std::vector<std::string> levels;            // as written in the study file
  std::vector<std::optional<double>> values;  // of each level in `unit`; unset where the level is a name
};

// What a metric means. Runs hold its values by name.
struct StudyMetric {
  std::string name;   // "seconds_per_epoch", "energy_per_epoch_j", ...
  std::string title;  // "energy per epoch"
  std::string unit;   // "s", "J", "J/sample", "" for a ratio
  bool lower_is_better = true;
};

struct StudyValue {
  double value = 0;
  std::optional<double> uncertainty;  // half-width of a 95 % interval, of this one run
};

enum class Verdict {
  valid,
  invalid,  // ran, but not under the conditions that the cell asks for; kept and shown, never averaged
  failed,   // the command failed or ran out of time
  missing,  // not run yet
};
[[nodiscard]] const char* to_word(Verdict);
[[nodiscard]] std::optional<Verdict> verdict_of(const std::string& word);

struct StudyRun {
  std::size_t cell = 0;               // index into StudyTable::cells
  int repetition = 0, block = 0;      // from 0
  std::optional<int> order;           // position in which it ran, from 0
  std::string folder;                 // its run directory, relative to the study; "" if there is none
  Verdict verdict = Verdict::missing;
  std::vector<std::string> reasons;   // why not valid, or what is odd
  std::map<std::string, StudyValue> metrics;  // a metric that is not known is not here
};

struct StudyCell {
  std::vector<std::size_t> levels;  // for each factor an index into its levels
};

struct StudyTable {
  std::string name, description;
  std::vector<StudyFactor> factors;
  std::vector<StudyMetric> metrics;
  std::vector<StudyCell> cells;
  std::vector<StudyRun> runs;
  std::vector<Warning> warnings;
};

}  // namespace ergometer
