// Samples of a workload by number. Implemented by each network's folder, read by the loader in worker threads.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/batch.hpp"
#include "core/result.hpp"

namespace ergometer::workload {

enum class Split { train, validation };

struct DataOptions {
  std::string folder;  // "synthetic": random samples
  std::int64_t batch = 1;
  std::uint64_t seed = 42;
  bool strict = false;          // what would be skipped stops with an error instead
  std::int64_t image_size = 0;  // pixels of a side; 0: the workload's
  std::int64_t sequence = 0;    // tokens; 0: the workload's
  bool graphs = false;          // pad to few static shapes, for recorded CUDA graphs
  std::string state;            // DataSet::state() of the training, from a checkpoint; empty: none
};

class DataSet {
 public:
  virtual ~DataSet() = default;

  virtual std::int64_t size() const = 0;
  // The samples of these numbers (0 <= n < size(), at most DataOptions::batch of them) as one batch of host memory.
  // Random augmentation and masking follow `seed` alone, so that the number of workers changes nothing. Called from
  // several threads at once.
  virtual Result<Batch> load(const std::vector<std::int64_t>& samples, std::uint64_t seed) const = 0;
  // What inference must know of the training data (scales, class names), kept in the checkpoint; empty: nothing.
  virtual std::string state() const { return {}; }
  // What was left out when the files were opened; one line each.
  virtual std::vector<std::string> notes() const { return {}; }
  // Losses of trivial predictors over the samples of these numbers, by name ("mean_predictor").
  virtual std::vector<std::pair<std::string, double>> baselines(const std::vector<std::int64_t>& samples) const {
    static_cast<void>(samples);
    return {};
  }
};

}  // namespace ergometer::workload
