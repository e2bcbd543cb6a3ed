// MeterCheck: whether two sources of a run agree as MLPerf Training asks of a power meter (power_measurement.adoc,
// "Target 5% Accuracy", github.com/mlcommons/training_policies): readings at 1 Hz, the Olympic means over five disjoint
// minutes within 5 %. Pure; used by `ergometer check-meter`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/manifest.hpp"
#include "model/trace.hpp"

namespace ergometer {

inline constexpr std::size_t kMeterWindows = 5;
inline constexpr double kMeterTolerance = 0.05;

// One power or energy channel of a trace.
struct MeterSource {
  const Trace* trace;
  std::size_t column;
};

struct MeterWindow {
  MonoTime begin;
  double a_w = 0, b_w = 0;  // mean power over the minute
};

struct MeterCheck {
  std::vector<MeterWindow> windows;  // those used, in order of time; five, or fewer if there are no more
  std::size_t minutes = 0;           // disjoint minutes that both sources cover with enough readings
  std::optional<double> a_w, b_w;    // Olympic means: without the highest and the lowest of each source
  std::optional<double> difference;  // (a - b) / b
  std::string missing;               // why there is no verdict; "" if there is one
  [[nodiscard]] bool agrees() const;
};

// Minutes follow one another from the beginning of what both sources cover. One counts if each source covers 99 % of it
// with at least 57 readings: 1 Hz with three polls lost. Of more than five, five that are spread evenly over the run
// are used, so that they see its different loads. `b` is the reference.
[[nodiscard]] MeterCheck check_meter(const MeterSource& a, const MeterSource& b);

// Mean without the highest and the lowest value; of three values or more.
[[nodiscard]] std::optional<double> olympic_mean(std::vector<double> values);

}  // namespace ergometer
