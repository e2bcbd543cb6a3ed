#include "engine/plan.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace ergometer::workload {
namespace {

constexpr std::uint64_t kInOrder = 1ULL << 63;  // part of the seed; epochs have the small numbers

// Fisher and Yates with a generator whose numbers the standard fixes, so that a seed means the same order everywhere.
std::vector<std::int64_t> shuffled(std::int64_t size, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::mt19937_64 random(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

}  // namespace

std::uint64_t derive_seed(std::uint64_t seed, std::uint64_t part) {
  std::uint64_t mixed = seed + 0x9E3779B97F4A7C15ULL * (part + 1);
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 31);
}

std::int64_t steps_of_epoch(std::int64_t samples, std::int64_t batch, std::int64_t ranks) {
  return samples / (batch * ranks);
}

std::vector<PlannedBatch> plan_epoch(std::int64_t size, std::int64_t batch, std::int64_t steps, std::uint64_t seed,
                                     std::int64_t epoch, const Share& share) {
  const std::uint64_t epoch_seed = derive_seed(seed, static_cast<std::uint64_t>(epoch));
  const auto order = shuffled(size, epoch_seed);
  std::vector<PlannedBatch> plan;
  for (std::int64_t step = 0; step < std::min(steps, steps_of_epoch(size, batch, share.ranks)); ++step) {
    const std::int64_t number = step * share.ranks + share.rank;  // of all ranks' batches
    const auto first = order.begin() + number * batch;
    plan.push_back({{first, first + batch}, derive_seed(epoch_seed, static_cast<std::uint64_t>(number))});
  }
  return plan;
}

std::vector<PlannedBatch> plan_in_order(const std::vector<std::int64_t>& samples, std::int64_t batch,
                                        std::uint64_t seed, const Share& share) {
  std::vector<PlannedBatch> plan;
  const auto size = static_cast<std::int64_t>(samples.size());
  const std::uint64_t pass_seed = derive_seed(seed, kInOrder);
  for (std::int64_t number = share.rank; number * batch < size; number += share.ranks) {
    const auto first = samples.begin() + number * batch;
    const auto last = samples.begin() + std::min(size, (number + 1) * batch);
    plan.push_back({{first, last}, derive_seed(pass_seed, static_cast<std::uint64_t>(number))});
  }
  return plan;
}

std::vector<std::int64_t> evenly_spaced(std::int64_t size, std::int64_t count) {
  const std::int64_t kept = std::min(size, count);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < kept; ++i) numbers.push_back(i * size / kept);
  return numbers;
}

}  // namespace ergometer::workload
