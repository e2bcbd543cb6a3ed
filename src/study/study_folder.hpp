// The folder of a study: study.toml as it was at the start, plan.json, its journals, runs/NNNN, table.json. Makes it,
// opens it again, and refuses a file that is no longer the one that it was made from. Used by every study command.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "device/control_lock.hpp"
#include "study/plan.hpp"
#include "study/study_journal.hpp"

namespace ergometer {

struct StudyFolder {
  std::filesystem::path path;  // absolute
  StudyFile file;
  Plan plan;
};

// What a study is made from.
struct StudySource {
  std::string text;  // of the TOML file
  std::string name;  // for messages: the file's path, or "built-in frey2022"
  StudyOverrides overrides;
};

// Errors: those of the file and its design; exists if `path` holds something else. Syncs what it writes.
[[nodiscard]] Result<StudyFolder> create_study(const std::filesystem::path& path, const StudySource& source,
                                               Plan plan, StudyFile file);
// Errors: not_found if it is no study; corrupt.
[[nodiscard]] Result<StudyFolder> open_study(const std::filesystem::path& path);
// Whether the folder holds a study's plan.
[[nodiscard]] bool is_study_folder(const std::filesystem::path& path);
// Error (exists) if the source or its overrides differ from what the folder was made from, with the first line.
[[nodiscard]] Result<void> check_unchanged(const StudyFolder& study, const StudySource& source);

// The right to run this study: one holder at a time. Error (exists) names the holder.
[[nodiscard]] Result<ControlLock> lock_study(const StudyFolder& study);
// The right to run cells on this node: two studies at once would measure each other. Error (exists) names the other.
[[nodiscard]] Result<ControlLock> lock_node(const ControlPlaces& places, const StudyFolder& study);

}  // namespace ergometer
