// Curve: the running integral of one channel over time. It answers how much (joules, or a gauge's mean) lies between
// any two moments, how much of that time readings cover, and how far the answer may be off. docs/method.md derives the
// formulas. Used by Summariser, one Curve a channel.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/counter.hpp"
#include "analysis/series.hpp"

namespace ergometer {

// What lies in one interval. `amount` is joules for energy, unit times seconds for a gauge, the growth of a counter.
struct Share {
  double amount = 0;
  double covered_s = 0;
  double variance = 0;            // square of the 95 % half-width of `amount`: edges and what lies between readings
  double blind_s = 0;             // of the length, what lies within one reading: its level there is the mean only
  double bridged = 0;             // what gaps of a gauge would add if bridged by a straight line
  double clock = 0;               // half-width: what the error of another node's clock may move into or out of it
  std::optional<double> highest;  // highest level read: the value of a gauge, the growth per second of a counter
  void add(const Share& other);   // sums of disjoint intervals
};

// An interval without a value between two readings.
struct Hole {
  std::int64_t begin_ns, end_ns;
  std::size_t index;        // of the reading before it
  std::int64_t missing_ns;  // sum of all holes up to and including this one
  double bridged;           // likewise
};

// Counts of what a counter did.
struct CounterLog {
  std::size_t wraps = 0, resets = 0, ambiguous = 0;
  std::optional<double> ambiguous_delta;  // the least growth over the first ambiguous step
};

struct CurveOptions {
  std::int64_t window_ns = 0;  // averaging window of the device
  std::int64_t period_ns = 0;  // update period of the device: how stale a reading may be; 0: a counter's is observed
  std::int64_t delay_ns = 0;   // a reading shows the power of this much earlier
  bool polled = false;         // rows carry the time of the poll, not of the device's update
  double timing_s = 0;         // standard deviation of the readings' times against the load's
  double share = 0;            // part of the time that gauge readings look at; at 1 nothing is missed between them
  double resolution = 0;       // smallest step of a reading
  std::int64_t gap_ns = 0;     // gauges: a longer distance of two readings is a gap
  bool uncertain = true;       // whether Share::variance is wanted
};

// The longest distance of two readings that counts as covered: 5 usual distances, the averaging window, and 3 polls
// where the rows are polls.
[[nodiscard]] std::int64_t gap_limit(const SensorInfo& sensor, const Channel& channel, std::int64_t usual_ns);

class Curve {
 public:
  // Trapezoids between readings; half a usual distance before the first and after the last is covered by them.
  // `series` must outlive the Curve. O(rows).
  static Curve of_gauge(const Series& series, const CurveOptions& options);
  // Straight lines between corrected readings; covers nothing outside of them. Resets and ambiguous steps are holes.
  static Curve of_counter(const Series& series, const CounterRules& rules, const CurveOptions& options);

  // Share of [from, to]; from <= to. Readings are taken for the middle of what they show, so that both edges are looked
  // up `lag` later. O(log rows), O(1) amortised when `hint` (any value) is carried along calls with ascending `from`.
  [[nodiscard]] Share between(std::int64_t from, std::int64_t to, std::size_t& hint) const;
  // Level of the newest reading not later than t.
  [[nodiscard]] std::optional<double> last_level(std::int64_t t) const;
  [[nodiscard]] const std::vector<Hole>& holes() const { return holes_; }
  [[nodiscard]] const CounterLog& log() const { return log_; }
  // Lowest and highest level read; nothing without readings.
  [[nodiscard]] std::optional<std::pair<double, double>> range() const;
  // The shortest interval of whose load a reading says something.
  [[nodiscard]] std::int64_t blind_ns() const;
  // How the device reads, the period of a counter as observed; from a moment to the middle of what shows it.
  [[nodiscard]] const CurveOptions& options() const { return options_; }
  [[nodiscard]] std::int64_t lag_ns() const { return lag_ns_; }
  // Of reading i.
  [[nodiscard]] double level(std::size_t i) const { return levels_[i]; }
  // Update period: declared, or of a counter observed; 0 if unknown.
  [[nodiscard]] std::int64_t period_ns() const { return options_.period_ns; }
  // Running integral and covered time (ns), from an arbitrary zero.
  struct Point {
    double amount = 0, bridged = 0;
    std::int64_t covered_ns = 0;
  };
  // At reading i.
  [[nodiscard]] Point at_reading(std::size_t i) const { return point(t_[i], static_cast<std::ptrdiff_t>(i)); }

 private:
  // Up to a reading: the integral, and the sums of squared differences of neighbours and of readings two apart, each
  // times the squared distance of neighbours.
  struct Sums {
    double amount = 0, near = 0, far = 0;
  };
  // The running integral at an edge, with the square of its standard deviation.
  struct Edge {
    double amount = 0, variance = 0;
  };
  Curve(const Series& series, const CurveOptions& options, bool counter);
  [[nodiscard]] std::ptrdiff_t find(std::int64_t t, std::size_t hint) const;
  [[nodiscard]] const Hole* hole_after(std::ptrdiff_t i) const;
  [[nodiscard]] Point point(std::int64_t t, std::ptrdiff_t i) const;
  // Edges and uncertainty of one share (curve_edges.cpp).
  void judge(std::int64_t from, std::ptrdiff_t i, const Point& a, std::int64_t to, std::ptrdiff_t j, const Point& b,
             Share& share) const;
  enum class Hold { none, either, rather_outside };
  [[nodiscard]] Edge edge(std::int64_t t, std::ptrdiff_t i, double plain, bool begin, Hold hold) const;
  [[nodiscard]] Edge outer_edge(std::int64_t t, std::size_t k, double plain) const;
  [[nodiscard]] Edge held_edge(std::int64_t t, std::size_t i, double plain, double trust_left) const;
  [[nodiscard]] double sampled_edge(std::int64_t t, std::size_t k, bool begin) const;
  [[nodiscard]] double counter_edge(std::int64_t t, std::size_t k) const;
  [[nodiscard]] double step_near(std::size_t k) const;
  [[nodiscard]] double between_readings(std::size_t first, std::size_t last) const;
  [[nodiscard]] double inside_one_stretch(std::size_t k, double length_s) const;
  [[nodiscard]] std::optional<double> highest(std::int64_t from, std::ptrdiff_t i, std::int64_t to,
                                              std::ptrdiff_t j) const;
  [[nodiscard]] Sums sums_at(std::size_t k) const;
  void add_sums(Sums& sums, std::size_t i) const;
  void add_hole(std::size_t i, double bridged);
  void find_counter_levels();
  void settle();
  void find_block_maxima();

  std::span<const std::int64_t> t_;
  const Series* series_;
  CurveOptions options_;
  bool counter_;
  std::int64_t lag_ns_ = 0;         // from a moment to the middle of the readings that show it
  std::int64_t hold_ns_ = 0;        // covered after the last reading
  std::vector<double> amount_;      // counters: running sum at each reading
  std::vector<Sums> block_sums_;    // gauges: at the first reading of each block; the rest is summed when asked for
  std::vector<double> own_levels_;  // counters: growth per second after each reading
  std::span<const double> levels_;  // gauges: the readings; counters: own_levels_
  std::vector<double> block_max_;   // highest level of each block of readings
  std::vector<Hole> holes_;
  CounterLog log_;
};

}  // namespace ergometer
