// What a load of known shape tells about a sensor: how often a channel is updated, over what window it averages, how
// late it is, its resolution, its gain and offset. Pure. Used by `ergometer calibrate` with the load's own switching
// times, or with the readings of a power meter as the truth. docs/calibration.md has the formulas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/arithmetic.hpp"
#include "model/trace.hpp"

namespace ergometer {

// The truth: straight lines between (t, value); two values at one time are a step. Values are watts of a meter, or the
// part of the load that is on (0..1).
struct Reference {
  std::vector<std::int64_t> t_ns;  // monotonic, not falling
  std::vector<double> values;
  bool in_watts = false;
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps;  // where nothing is known; ascending
  void step(std::int64_t at_ns, double value);              // from here on `value`
};

struct ChannelCalibration {
  std::string sensor, column;
  std::size_t readings = 0, updates = 0;     // rows with a value; those that differ from the one before
  std::optional<double> read_s, read_p99_s;  // what a read costs: median and 99th percentile; polled sensors
  std::optional<double> period_s;            // usual distance of updates
  bool period_is_bound = false;              // it changed at nearly every read: the period is at most this
  std::optional<Estimate> window_s;          // gauges: the reading is the mean of so much time
  std::optional<Estimate> delay_s;           // that ended so long before
  std::optional<double> sampled_share;       // window over period, at most 1
  std::optional<double> resolution;          // smallest difference of two readings, in the channel's unit
  std::optional<double> low_w, high_w;       // readings with the load off and on, as fitted
  std::optional<Estimate> gain, offset_w;    // of a reference in watts: true power = gain * reading + offset
  double explained = 0;                      // share of the readings' variance that the fit explains, 0..1
  std::optional<double> energy_j;            // what the channel says of the reference's time span
};

// Column `index` of `trace` (a power gauge or an energy counter) against `reference`. What the readings cannot tell
// stays unset: no load in them, too few updates, a fit that explains less than half.
[[nodiscard]] ChannelCalibration calibrate_channel(const Trace& trace, std::size_t index, const Reference& reference);

// A power meter's readings as a reference: a distance above 5 times the usual one, or a missing value, is a gap.
[[nodiscard]] Reference reference_of(const std::vector<Row>& rows);

struct MeterCalibration {
  ChannelCalibration channel;
  // What the meter says of a moment of its own clock, the channel shows so much later: what the clocks are apart and
  // the channel's delay. Unset if the two do not go together within the search.
  std::optional<Estimate> later_s;
};

// The same against a meter whose clock may be off by up to `most_s`. Only a load that changes tells: without one
// nothing is set.
[[nodiscard]] MeterCalibration calibrate_against_meter(const Trace& trace, std::size_t index, const Reference& meter,
                                                       double most_s);

}  // namespace ergometer
