// Joins runs of nodes that share no storage into one run directory (docs/run-format.md). Used by ergometer merge.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/warning.hpp"

namespace ergometer {

struct MergedRun {
  std::size_t nodes = 0;
  std::vector<Warning> warnings;  // machines that were given twice
};

// Makes `out` of the nodes of all `runs`; `name` is the new run's ("": that of the first). Nothing is converted: files
// of nodes that have ended are linked (copied where that is impossible), those of others copied as they stand. Each
// node's part.json says how its clock lies against one of them: as measured by the node itself, else by the wall clocks
// of both. A machine that was given twice for the same time is taken once. Errors name the folder: one that is no run,
// `out` that exists and is not empty. What was made is removed again.
[[nodiscard]] Result<MergedRun> merge_runs(const std::vector<std::filesystem::path>& runs,
                                           const std::filesystem::path& out, const std::string& name);

}  // namespace ergometer
