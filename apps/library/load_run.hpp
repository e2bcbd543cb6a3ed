// From a run directory to its Summary: reads with store, derives with analysis. Shared by the command line and the
// library.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/manifest.hpp"
#include "model/node.hpp"
#include "model/region.hpp"
#include "model/summary.hpp"
#include "model/trace.hpp"

namespace ergometer {

struct LoadedRun {
  Manifest manifest;
  std::vector<Node> nodes;
  Summary summary;  // includes the reader's warnings about damage
};

// For who wants more of a run than its summary: sees what is read on the way, so that nothing is read twice. Either
// may be empty.
struct RunVisitor {
  std::function<void(const Node&, const std::vector<Region>&, const std::vector<Event>&)> node;
  std::function<void(const std::string& node, const Trace&)> trace;  // from several threads at once, in any order
};

// Traces are read and analysed by up to `hardware_concurrency` threads, one sensor at a time each.
// With `only` the run is taken as if its command had begun and ended there.
[[nodiscard]] Result<LoadedRun> load_run(const std::filesystem::path& dir, const RunVisitor& visitor = {},
                                         const std::optional<Interval>& only = {});

// Writes DIR/summary.json, atomically.
[[nodiscard]] Result<void> write_summary(const std::filesystem::path& dir, const Summary& summary);

}  // namespace ergometer
