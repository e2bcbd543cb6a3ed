// The engine: runs what a study has not run yet, one run at a time, under the controls of its cell, and keeps the journal.
// Everything that it sets is restored on every way out. Used by `ergometer study run`, by bench and by batch jobs.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "device/control_guard.hpp"
#include "study/cell_setup.hpp"
#include "study/metrics.hpp"
#include "study/progress.hpp"
#include "study/study_folder.hpp"

namespace ergometer {

struct EngineEvent {
  enum class Kind { begins, works, ended, cools } kind = Kind::begins;
  std::size_t run = 0;
  std::string cell;            // "power_limit 200W, batch 16"
  const RunEnd* end = nullptr;  // of `ended`
  StudyProgress progress;      // of `begins` and `ended`
  Nanos elapsed{0};            // of `works` and `cools`
  std::optional<double> power_w;  // of `works`: now, of all in the total
};

// The world that the engine needs besides its folder.
struct EngineWorld {
  Host host;
  StudyMachine machine;
  GuardOptions guard;              // its holder is filled in
  std::vector<std::string> tool;   // this program and its global options
  std::string program_folder;      // where this program lies: added to the end of PATH
  int signal_fd = -1;              // a signalfd with the signals that ask to end; -1: none
  std::function<void()> in_child;  // before exec, async-signal-safe
  // Reads a run directory of one node.
  std::function<Result<MeasuredRun>(const std::filesystem::path&)> load;
  std::function<void(const EngineEvent&)> tell;
  std::function<std::optional<double>()> hottest_gpu;  // degrees Celsius now; empty: nothing is known
};

struct EngineTask {
  std::string journal = "journal.jsonl";
  std::set<std::size_t> only;  // these runs; empty: all that are left
  bool again = false;          // also those that failed or were not valid
  bool in_job = false;         // inside a batch job
};

struct EngineResult {
  std::size_t ran = 0;
  std::string stopped;             // why it ended before the last run; "" if it did not
  std::optional<int> signal;       // that asked to end
  std::vector<Restored> restored;  // of the controls
};

// Errors: what keeps the study from starting (permissions, another holder, an earlier journal of controls, a setting that
// somebody else changed), a command that failed in every cell so far, a full disk. What has run is in the journal.
[[nodiscard]] Result<EngineResult> run_study(const StudyFolder& study, const EngineWorld& world, const EngineTask& task);

}  // namespace ergometer
