// Candidate: what one power or energy channel says about every line of a node; Gauge: the same for any other channel.
// They are all that is kept of a trace. Used by Summariser; chosen among in domain.hpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/curve.hpp"
#include "analysis/rows.hpp"

namespace ergometer {

// A channel's running energy and level at some of its readings (at most a few hundred thousand): enough to fill the
// holes of a counter of the same domain, or to anchor a power channel to it, after the trace itself is gone.
struct Outline {
  std::vector<std::int64_t> t;
  std::vector<double> energy_j, covered_s, level_w;
  // Energy and covered time of [from, to] by straight lines between the kept readings.
  [[nodiscard]] Share between(std::int64_t from, std::int64_t to) const;
};

struct Candidate {
  Channel channel;
  std::string sensor, interface;
  std::optional<double> plain_mean_w;         // gauges: mean of the readings in the run, each counted once
  std::int64_t resolves_ns = 0;               // shorter intervals are below what the channel can tell
  std::int64_t blind_ns = 0;                  // the level within so long is the mean of a reading, at best
  std::vector<Share> shares;                  // one a line, gain and offset applied
  std::vector<Share> fills;                   // counters with holes: what a power channel says about them; one a line
  std::optional<double> lowest_w, highest_w;  // of all readings
  std::optional<double> last_power_w;         // newest reading in the run
  std::vector<Hole> holes;                    // gaps of a gauge, valueless steps of a counter
  std::int64_t longest_gap_ns = 0;            // inside the run
  std::size_t gaps = 0;                       // inside the run
  std::size_t readings = 0;
  std::int64_t first_ns = 0, last_ns = 0;
  CounterLog log;
  Outline outline;          // measured channels
  CurveOptions reading;     // how the device reads; the period of a counter as observed
  std::int64_t lag_ns = 0;  // from a moment to the readings that show it
  // By how much more than their uncertainties allow a power channel differs from the counter over the run, as a share.
  double contradicted = 0;
  bool anchored = false;  // a counter between whose readings a power channel tells the shape
  // Families of regions that begin again and again at the same point of the device's cycle of readings.
  std::vector<std::string> locked;
  std::string mirror_of;  // domain whose counter of the same socket always reads the same; "" if none
};

// A metric for each line: mean of a gauge over its covered time, growth of a counter.
struct Gauge {
  std::string sensor;
  std::string key;  // "gpu/0/sm_active_ratio"
  std::vector<std::optional<double>> values;
};

// Means of gauges (growth of counters) over the run or one of its idle phases, by key.
class RunMeans {
 public:
  explicit RunMeans(std::span<const Gauge> gauges) : gauges_(gauges) {}
  [[nodiscard]] std::optional<double> operator()(const std::string& key, std::uint32_t row = kRunRow) const {
    for (const auto& gauge : gauges_)
      if (gauge.key == key && row < gauge.values.size() && gauge.values[row]) return gauge.values[row];
    return std::nullopt;
  }

 private:
  std::span<const Gauge> gauges_;
};

// True for channels that give energy.
[[nodiscard]] bool gives_energy(const Channel& channel);

// For each column the earlier column that it mirrors: an energy counter of the same scope and socket that has the same
// reading in every row, as dies of one socket show on some processors.
[[nodiscard]] std::vector<std::optional<std::size_t>> find_mirrors(const Trace& trace);

// True power = gain x reading + offset.
void calibrate(const Channel& channel, Share& share);

[[nodiscard]] Candidate make_candidate(const Trace& trace, std::size_t column, const Rows& rows);
// Metrics of any other channel: mean (gauge), peak (bytes), growth (counter), CPU time as share of one core.
void add_gauges(const Trace& trace, std::size_t column, const Rows& rows, std::vector<Gauge>& out);

}  // namespace ergometer
