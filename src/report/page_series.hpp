// PageSeries: one channel of a run as the page shows it: thinned readings, mean, extremes and spread. Made a trace at a
// time, so that a day of eight GPUs needs the memory of one sensor. Used by `ergometer report`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "model/channel.hpp"
#include "report/thin.hpp"

namespace ergometer {

// What a series' values are.
enum class SeriesRole {
  power,  // watts, read or from an energy counter
  gauge,  // a level: share, bytes, hertz, degrees
  rate,   // growth of a counter by second: bytes/s, CPU seconds/s
};

struct PageSeries {
  std::string node, sensor;
  Channel channel;
  SeriesRole role = SeriesRole::gauge;
  std::string unit;  // of the values: "W", "1", "B", "B/s", ...
  ThinSeries points;
  std::size_t readings = 0;                // of which `points` is a part
  std::int64_t usual_ns = 0;               // usual distance of two readings
  std::int64_t first_ns = 0, last_ns = 0;  // of all readings; meaningless without any
  std::optional<double> mean, lowest, highest;
  TimeSpread spread;
  PartMeans parts;
};

// The readings that a series is made of; spans as Series and Curve of the analysis give them.
struct SeriesInput {
  std::span<const std::int64_t> t;
  std::span<const double> values;
  std::int64_t usual_ns = 0, gap_ns = 0;
};

struct SeriesDetail {
  std::size_t buckets = 1000;      // of the thinned readings
  std::int64_t part_width_ns = 0;  // of `parts`
};

// Gain and offset of a calibrated power channel are applied: the figure and the table speak of the same watts.
[[nodiscard]] PageSeries make_page_series(std::string node, std::string sensor, const Channel& channel, SeriesRole role,
                                          const SeriesInput& input, const SeriesDetail& detail);

}  // namespace ergometer
