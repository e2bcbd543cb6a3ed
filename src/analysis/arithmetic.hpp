// Small arithmetic that several files of this folder share.
#pragma once

namespace ergometer {

// A value with the half-width of its 95 % interval.
struct Estimate {
  double value = 0, uncertainty = 0;
};

inline constexpr double kNsPerS = 1e9;

[[nodiscard]] constexpr double square(double x) { return x * x; }

}  // namespace ergometer
