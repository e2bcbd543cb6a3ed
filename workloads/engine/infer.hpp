// Inference of any workload over its validation data: a timed pass with markers, predictions to a file, then loss and
// accuracy. Used by the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/workload.hpp"
#include "engine/options.hpp"

namespace ergometer::workload {

struct InferReport {
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  double seconds = 0;             // of the pass, with everything that belongs to it (also writing predictions)
  std::vector<double> latencies;  // seconds by batch: from its samples on the host to its predictions on the host
  std::optional<double> loss;
  std::optional<double> accuracy;  // 0..1
  std::vector<std::pair<std::string, double>> baselines;
};

// With options.checkpoint: that network and the data scaled as in its training; otherwise the initial weights, with a
// note. Every kind of Error may come.
[[nodiscard]] Result<InferReport> infer(const Workload& workload, const InferOptions& options, Console console);

}  // namespace ergometer::workload
