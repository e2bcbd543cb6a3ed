// Random numbers that follow from a seed and a number of the sample alone, the same on every machine. Used for masking,
// synthetic tokens and made-up text.
#pragma once

#include <cstdint>

namespace ergometer::workload::language {

// Value i is SplitMix64's mixing function (Steele, Lea, Flood 2014) of a counter that starts at a hash of both.
class SampleRandom {
 public:
  SampleRandom(std::uint64_t seed, std::uint64_t sample) : counter_(mix(mix(seed + kStep) ^ (sample * kStep))) {}

  std::uint64_t next() { return mix(counter_ += kStep); }
  // 0 <= value < 1
  double uniform() { return static_cast<double>(next() >> 11U) * 0x1p-53; }
  // 0 <= value < count; count at least 1
  std::uint64_t below(std::uint32_t count) { return ((next() >> 32U) * count) >> 32U; }

 private:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15ULL;
  static std::uint64_t mix(std::uint64_t value) {
    value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    value = (value ^ (value >> 27U)) * 0x94D049BB133111EBULL;
    return value ^ (value >> 31U);
  }

  std::uint64_t counter_;
};

}  // namespace ergometer::workload::language
