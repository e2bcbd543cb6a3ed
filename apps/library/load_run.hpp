// From a run directory to its Summary: reads with store, derives with analysis. Shared by the command line and the
// library.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.hpp"
#include "model/manifest.hpp"
#include "model/node.hpp"
#include "model/summary.hpp"

namespace ergometer {

struct LoadedRun {
  Manifest manifest;
  std::vector<Node> nodes;
  Summary summary;  // includes the reader's warnings about damage
};

// Traces are read and analysed by up to `hardware_concurrency` threads, one sensor at a time each.
[[nodiscard]] Result<LoadedRun> load_run(const std::filesystem::path& dir);

// Writes DIR/summary.json, atomically.
[[nodiscard]] Result<void> write_summary(const std::filesystem::path& dir, const Summary& summary);

}  // namespace ergometer
