// Random numbers that follow a seed and the number of a sample alone, so that neither workers nor machines change them.
// Used by the augmentation of pictures and by the made data sets.
#pragma once

#include <cstdint>

namespace ergometer::workload::vision {

// SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"): a counter and a mixing
// function. Two streams of one seed start at unrelated counters.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream) : counter_(mix(seed) ^ mix(stream + kStep)) {}

  std::uint64_t next() { return mix(counter_ += kStep); }
  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * uniform(); }
  // In [0, count); `count` is at most 2^31, so that the bias of the product is below 2^-32.
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(((next() >> 32) * static_cast<std::uint64_t>(count)) >> 32);
  }
  bool coin() { return (next() >> 63) != 0; }

 private:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15ULL;
  static std::uint64_t mix(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
    return value ^ (value >> 31);
  }

  std::uint64_t counter_;
};

}  // namespace ergometer::workload::vision
