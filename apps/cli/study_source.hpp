// What the argument STUDY of the study commands means: a file, a built-in study or a study's folder. Used by study and
// bench.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"
#include "device/control_plan.hpp"
#include "study/cell_setup.hpp"
#include "study/study_folder.hpp"

namespace ergometer::cli {

struct StudyOptions {
  std::string study, output, store = "runs";
  std::vector<std::string> set, levels;
  std::string design, executor, site_command;
  bool all = false, retry = false, json = false;
  std::vector<std::string> where;    // show: FACTOR=LEVEL, cells of these levels only
  std::vector<std::string> predict;  // show: FACTOR=NUMBER, by the power laws
  std::string metric;
};

// The options as overrides. Errors say how to write them.
[[nodiscard]] Result<StudyOverrides> overrides_of(const StudyOptions& options);

struct StudyTarget {
  std::filesystem::path folder;        // where the study is, or will be
  bool exists = false;                 // the folder holds it
  std::optional<StudySource> source;   // unset if a folder was named
};
// Errors (not_found): no such file, built-in or folder, with the nearest built-in.
[[nodiscard]] Result<StudyTarget> study_target(const StudyOptions& options);

// The controls of this machine, if the study needs any.
[[nodiscard]] StudyMachine find_machine(const Context& context, const StudyFile& file, const std::string& site_command);

// The folder's study, or a plan of what it would be; writes nothing.
struct PlannedStudy {
  StudyFile file;
  Plan plan;
  StudyMachine machine;
};
[[nodiscard]] Result<PlannedStudy> plan_study(const Context& context, const StudyOptions& options,
                                              const StudyTarget& target);

}  // namespace ergometer::cli
