// Which samples make which batch: the shuffled batches of one rank's epoch, and batches in order for validation and
// inference. A function of the seed alone. Used by training and inference, run by the loader.
#pragma once

#include <cstdint>
#include <vector>

namespace ergometer::workload {

struct PlannedBatch {
  std::vector<std::int64_t> samples;
  std::uint64_t seed = 0;  // of random augmentation and masking
};

// Which share of the batches: every `ranks`-th from the `rank`-th on.
struct Share {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
};

// A number that depends on both and looks like neither: the seed of part `part` of what `seed` means (SplitMix64,
// Steele et al. 2014).
[[nodiscard]] std::uint64_t derive_seed(std::uint64_t seed, std::uint64_t part);

// Whole batches that each rank has in an epoch: the last, partial ones are dropped.
[[nodiscard]] std::int64_t steps_of_epoch(std::int64_t samples, std::int64_t batch, std::int64_t ranks);

// At most `steps` batches of epoch `epoch` (from 1) of samples 0 .. size, in random order, no sample twice among all
// ranks.
[[nodiscard]] std::vector<PlannedBatch> plan_epoch(std::int64_t size, std::int64_t batch, std::int64_t steps,
                                                   std::uint64_t seed, std::int64_t epoch, const Share& share);

// Batches of these samples in their order, the last one partial; the same in training and inference.
[[nodiscard]] std::vector<PlannedBatch> plan_in_order(const std::vector<std::int64_t>& samples, std::int64_t batch,
                                                      std::uint64_t seed, const Share& share);

// `count` (at most size) of the numbers 0 .. size, evenly spaced from 0 on.
[[nodiscard]] std::vector<std::int64_t> evenly_spaced(std::int64_t size, std::int64_t count);

}  // namespace ergometer::workload
