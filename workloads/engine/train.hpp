// Training of any workload: epochs of steps with their markers, validation, checkpoints. Used by the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/workload.hpp"
#include "engine/options.hpp"
#include "parallel/rank.hpp"

namespace ergometer::workload {

// Over all ranks.
struct EpochReport {
  std::int64_t steps = 0;  // of one rank
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  std::int64_t skipped = 0;        // samples that could not be read
  double loss = 0;                 // mean over the epoch's batches, each before its update
  std::optional<double> accuracy;  // 0..1
  std::optional<double> validation_loss;
  std::optional<double> validation_accuracy;
  double samples_per_second = 0;  // of the steps alone
  double data_wait_share = 0;     // of the steps' time, in which this rank waited for data to be loaded; 0..1
  double seconds = 0;             // with the validation
};

struct TrainReport {
  std::vector<std::pair<std::string, double>> baselines;  // validation losses of trivial predictors
  std::vector<EpochReport> epochs;                        // that this training did; not those before a resume
};

// Prints a line an epoch to console.out, on rank 0 alone; the other ranks print nothing. Every kind of Error may come.
[[nodiscard]] Result<TrainReport> train(const Workload& workload, const TrainOptions& options, const Rank& rank,
                                        Console console);

}  // namespace ergometer::workload
