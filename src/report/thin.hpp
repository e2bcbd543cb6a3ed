// Thinning: of the readings of one channel those that a figure needs, so that a day of readings fits on a page and no
// peak is lost. Used by `ergometer report` through page_series.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ergometer {

// Readings in order of time; a value that is unset marks a gap: no line may be drawn across it.
struct ThinSeries {
  std::vector<std::int64_t> t_ns;
  std::vector<std::optional<double>> values;
  [[nodiscard]] std::size_t size() const { return t_ns.size(); }
};

// Divides the time from the first to the last reading into `buckets` equal parts and keeps the lowest and the highest
// reading of each, with their own times; both ends of every gap and of the series are kept as well. A distance above
// `gap_ns` is a gap; of more than `buckets` gaps the longest are kept. `t` ascends, `v` is as long and finite.
// O(readings).
[[nodiscard]] ThinSeries thin(std::span<const std::int64_t> t, std::span<const double> v, std::int64_t gap_ns,
                              std::size_t buckets);

// How the time is spread over values: share of the covered time in each of equally wide bins, the last one including
// its upper bound. Values outside count in the outermost bins.
struct TimeSpread {
  double low = 0, high = 0;
  std::vector<double> share;  // sums to 1; empty without readings
};
[[nodiscard]] TimeSpread spread_of_time(std::span<const std::int64_t> t, std::span<const double> v, std::int64_t gap_ns,
                                        std::int64_t usual_ns, double low, double high, std::size_t bins);

// Mean over the covered time, by trapezoids; of a single reading its value. Unset without readings.
[[nodiscard]] std::optional<double> mean_over_time(std::span<const std::int64_t> t, std::span<const double> v,
                                                   std::int64_t gap_ns);

// Means of the readings in parts of the time that are `width_ns` wide and begin at multiples of it, so that channels of
// one run can be set against each other. A part without readings is unset.
struct PartMeans {
  std::int64_t width_ns = 0, first = 0;  // the first part begins at first * width_ns
  std::vector<std::optional<double>> values;
};
[[nodiscard]] PartMeans part_means(std::span<const std::int64_t> t, std::span<const double> v, std::int64_t width_ns);
// A width of 1, 2 or 5 times a power of ten nanoseconds that divides `span_ns` into at most `parts`.
[[nodiscard]] std::int64_t part_width(std::int64_t span_ns, std::size_t parts);

}  // namespace ergometer
