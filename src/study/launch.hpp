// How a run is started: `ergometer run` around the command, here or through mpirun or srun. Pure words; used by the
// engine and, for what is missing, by the plan.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "model/study_table.hpp"
#include "study/cell_command.hpp"

namespace ergometer {

struct LaunchPlace {
  std::vector<std::string> tool;    // this program and its global options
  std::filesystem::path run_folder;
  std::string name;                 // of the run
  bool in_job = false;              // inside a batch job: several nodes are reached through srun
};

// The words to execute. On one node the measuring process is the parent of everything; on several each node has one, as
// the first of its ranks (`ergometer study rank`), with a folder of its own below the run's. Several ranks of a command that
// is not told their number are started as copies (`ergometer study ranks`), or by the launcher. Error: a launcher that cannot do it.
[[nodiscard]] Result<std::vector<std::string>> launch_words(const StudyFile& file, const CellCommand& cell,
                                                            const LaunchPlace& place);

// Programs that the cells need and `exists` does not find, as errors with remedies.
[[nodiscard]] std::vector<Error> missing_programs(const StudyFile& file, const std::vector<StudyCell>& cells,
                                                  const std::function<bool(const std::string&)>& exists);

}  // namespace ergometer
