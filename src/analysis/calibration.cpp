#include "analysis/calibration.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "analysis/curve.hpp"
#include "analysis/series.hpp"

namespace ergometer {
namespace {

constexpr std::size_t kFewestUpdates = 20;
constexpr double kStillShare = 0.2;  // so many equal readings show that a channel is read faster than it moves
constexpr double kFewestExplained = 0.5;
constexpr std::size_t kParts = 20;  // stretches of time that are left out in turn for the intervals

// Running integral of the reference.
class Integral {
 public:
  explicit Integral(const Reference& reference) : reference_(reference), sums_(reference.t_ns.size(), 0.0) {
    for (std::size_t i = 1; i < sums_.size(); ++i)
      sums_[i] = sums_[i - 1] + 0.5 * (reference.values[i] + reference.values[i - 1]) * seconds_between(i - 1, i);
  }
  // Up to t, the ends held beyond it.
  [[nodiscard]] double at(double t_ns) const {
    const auto& t = reference_.t_ns;
    const auto& v = reference_.values;
    const auto next = std::upper_bound(t.begin(), t.end(), static_cast<std::int64_t>(t_ns)) - t.begin();
    if (next == 0) return v.front() * (t_ns - static_cast<double>(t.front())) / kNsPerS;
    const auto i = static_cast<std::size_t>(next - 1);
    const double x = (t_ns - static_cast<double>(t[i])) / kNsPerS;
    if (i + 1 == t.size()) return sums_[i] + v[i] * x;
    const double length = seconds_between(i, i + 1);
    return sums_[i] + (v[i] + 0.5 * (v[i + 1] - v[i]) * x / length) * x;
  }
  [[nodiscard]] double value(double t_ns) const {
    constexpr double kMoment = 1e4;  // ns, far below what a load can switch in
    return (at(t_ns) - at(t_ns - kMoment)) / (kMoment / kNsPerS);
  }

 private:
  [[nodiscard]] double seconds_between(std::size_t i, std::size_t j) const {
    return static_cast<double>(reference_.t_ns[j] - reference_.t_ns[i]) / kNsPerS;
  }
  const Reference& reference_;
  std::vector<double> sums_;
};

// One update: the level that it shows, and the moments that it belongs to. A gauge has one moment; a counter's step the
// stretch since the step before.
struct Update {
  double from_ns, to_ns;
  double level;
  double weight = 1;
};

double quantile(std::vector<double> values, double share) {
  const auto k = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + k, values.end());
  return values[static_cast<std::size_t>(k)];
}

// The rows at which the channel changed, at the time between the read that saw it and the one before.
std::vector<Update> find_updates(const Series& series, bool own_time) {
  const auto t = series.t();
  const auto v = series.values();
  std::vector<Update> out;
  for (std::size_t i = own_time ? 0 : 1; i < series.size(); ++i) {
    if (!own_time && v[i] == v[i - 1]) continue;
    const double at = own_time ? static_cast<double>(t[i]) : 0.5 * static_cast<double>(t[i] + t[i - 1]);
    out.push_back({at, at, v[i]});
  }
  return out;
}

// Mean power of each step of a counter.
std::vector<Update> to_steps(const std::vector<Update>& readings) {
  std::vector<Update> out;
  for (std::size_t i = 1; i < readings.size(); ++i) {
    const double length_s = (readings[i].to_ns - readings[i - 1].to_ns) / kNsPerS;
    const double rise = readings[i].level - readings[i - 1].level;
    if (rise < 0 || length_s <= 0) continue;
    out.push_back({readings[i - 1].to_ns, readings[i].to_ns, rise / length_s, length_s});
  }
  return out;
}

// Least squares of level = low + slope * reference.
struct Line {
  double low = 0, slope = 0, residual = std::numeric_limits<double>::infinity(), total = 0;
};

struct Sums {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  void add(double w, double u, double v) {
    n += w, x += w * u, y += w * v, xx += w * u * u, xy += w * u * v, yy += w * v * v;
  }
  void take(const Sums& o) { n -= o.n, x -= o.x, y -= o.y, xx -= o.xx, xy -= o.xy, yy -= o.yy; }
  [[nodiscard]] Line line() const {
    const double sxx = xx - x * x / n, sxy = xy - x * y / n, syy = yy - y * y / n;
    if (n <= 0 || sxx <= 0) return {0, 0, std::numeric_limits<double>::infinity(), syy};
    const double slope = sxy / sxx;
    return {(y - slope * x) / n, slope, std::max(0.0, syy - slope * sxy), syy};
  }
};

double shown(const Integral& truth, const Update& u, double window_ns, double delay_ns) {
  const double to = u.to_ns - delay_ns, from = u.from_ns - delay_ns - window_ns;
  if (to - from < 1) return truth.value(to);
  return (truth.at(to) - truth.at(from)) / ((to - from) / kNsPerS);
}

Sums sums_of(const Integral& truth, const std::vector<Update>& updates, double window_ns, double delay_ns) {
  Sums sums;
  for (const auto& u : updates) sums.add(u.weight, shown(truth, u, window_ns, delay_ns), u.level);
  return sums;
}

struct Fit {
  double window_ns = 0, delay_ns = 0;
  Line line;
};

// The smallest residual over a grid, then over finer ones around the best. A counter has no window.
Fit best_fit(const Integral& truth, const std::vector<Update>& updates, bool counter) {
  Fit best;
  const auto consider = [&](double window_ns, double delay_ns) {
    const Line line = sums_of(truth, updates, window_ns, delay_ns).line();
    if (line.slope > 0 && line.residual < best.line.residual) best = {window_ns, delay_ns, line};
  };
  constexpr double kMs = 1e6;
  std::vector<double> windows{0};
  if (!counter)
    for (double w = 5; w <= 3000; w *= 1.4) windows.push_back(w * kMs);
  for (const double w : windows)
    for (double d = -20; d <= 400; d += 10) consider(w, d * kMs);
  for (double step = 5 * kMs; step > 0.2 * kMs; step /= 2) {
    const Fit centre = best;
    for (int i = -2; i <= 2; ++i)
      for (int j = -2; j <= 2; ++j)
        consider(counter ? 0 : std::max(0.0, centre.window_ns * (1 + 0.1 * i * step / (5 * kMs)) + i * step * 0.5),
                 centre.delay_ns + j * step);
  }
  return best;
}

// How far one of the two may be moved, the other fitted again, until the residual is worse than chance makes it: the
// likelihood ratio at 95 %, with as many degrees of freedom as there are updates.
double half_width_of(const Integral& truth, const std::vector<Update>& updates, const Fit& fit, bool window) {
  const double limit = fit.line.residual * (1 + 3.84 / static_cast<double>(updates.size()));
  const double start = std::max(0.25e6, 1e-3 * fit.line.residual / (fit.line.total + 1e-300) * 1e6);
  for (double move = start; move < 2e9; move *= 1.3) {
    bool all_worse = true;
    for (const double sign : {-1.0, 1.0}) {
      const double moved = (window ? fit.window_ns : fit.delay_ns) + sign * move;
      if (window && moved < 0) continue;
      // The mean moment of what is averaged stays where it is.
      const double other = window ? fit.delay_ns - sign * move / 2 : fit.window_ns;
      const Line line = window ? sums_of(truth, updates, moved, other).line()
                               : sums_of(truth, updates, std::max(0.0, fit.window_ns - 2 * sign * move), moved).line();
      all_worse = all_worse && line.residual > limit;
    }
    if (all_worse) return move;
  }
  return 2e9;
}

// Jackknife over stretches of time: neighbours err together, so single readings would promise too much.
std::array<Estimate, 2> gain_and_offset(const Integral& truth, const std::vector<Update>& updates, const Fit& fit) {
  std::array<Sums, kParts> parts;
  Sums all;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const double x = shown(truth, updates[i], fit.window_ns, fit.delay_ns);
    parts[i * kParts / updates.size()].add(updates[i].weight, x, updates[i].level);
    all.add(updates[i].weight, x, updates[i].level);
  }
  const auto invert = [](const Line& line) { return std::array{1 / line.slope, -line.low / line.slope}; };
  const auto whole = invert(all.line());
  std::array<double, 2> squares{};
  for (const auto& part : parts) {
    Sums rest = all;
    rest.take(part);
    const auto value = invert(rest.line());
    for (std::size_t k = 0; k < 2; ++k) squares[k] += (value[k] - whole[k]) * (value[k] - whole[k]);
  }
  constexpr double kT = 2.09;  // Student, 19 degrees of freedom, 95 %
  const double factor = (kParts - 1.0) / kParts;
  return {Estimate{whole[0], kT * std::sqrt(factor * squares[0])},
          Estimate{whole[1], kT * std::sqrt(factor * squares[1])}};
}

void find_period(const Series& series, const std::vector<Update>& updates, bool own_time, ChannelCalibration& out) {
  if (updates.size() < kFewestUpdates) return;
  std::vector<double> distances;
  for (std::size_t i = 1; i < updates.size(); ++i)
    distances.push_back((updates[i].to_ns - updates[i - 1].to_ns) / kNsPerS);
  out.period_s = quantile(std::move(distances), 0.5);
  out.period_is_bound =
      !own_time && static_cast<double>(updates.size()) > (1 - kStillShare) * static_cast<double>(series.size());
}

void find_read_cost(const Series& series, ChannelCalibration& out) {
  std::vector<double> costs;
  for (std::size_t i = 0; i < series.size(); ++i) costs.push_back(static_cast<double>(series.read_ns(i)) / kNsPerS);
  if (costs.empty()) return;
  out.read_s = quantile(costs, 0.5);
  out.read_p99_s = quantile(costs, 0.99);
}

void find_resolution(const Series& series, ChannelCalibration& out) {
  double smallest = std::numeric_limits<double>::infinity();
  const auto v = series.values();
  for (std::size_t i = 1; i < v.size(); ++i)
    if (v[i] != v[i - 1]) smallest = std::min(smallest, std::abs(v[i] - v[i - 1]));
  if (std::isfinite(smallest)) out.resolution = smallest;
}

}  // namespace

void Reference::step(std::int64_t at_ns, double value) {
  if (!values.empty()) {
    t_ns.push_back(at_ns);
    values.push_back(values.back());
  }
  t_ns.push_back(at_ns);
  values.push_back(value);
}

ChannelCalibration calibrate_channel(const Trace& trace, std::size_t index, const Reference& reference) {
  const Channel& channel = trace.info.channels[index];
  const bool counter = channel.behaviour == Behaviour::counter;
  const bool own_time = trace.info.own_time;
  ChannelCalibration out;
  out.sensor = trace.info.name;
  out.column = channel.column;
  const Series series(trace, index, false);
  out.readings = series.size();
  if (series.size() < 2 || reference.t_ns.size() < 2) return out;
  auto updates = find_updates(series, own_time);
  out.updates = updates.size();
  find_period(series, updates, own_time, out);
  if (!own_time) find_read_cost(series, out);
  if (!counter) find_resolution(series, out);  // a counter rises by power times period, which is no resolution
  CurveOptions options;
  options.gap_ns = gap_limit(trace.info, channel, series.usual_ns());
  options.uncertain = false;
  std::size_t hint = 0;
  const Curve curve = counter ? Curve::of_counter(series, {channel.range, channel.max_power_w}, options)
                              : Curve::of_gauge(series, options);
  const Share all = curve.between(reference.t_ns.front(), reference.t_ns.back(), hint);
  if (all.covered_s > 0) out.energy_j = all.amount;

  if (counter) updates = to_steps(updates);
  std::erase_if(updates, [&](const Update& u) {
    return u.from_ns < static_cast<double>(reference.t_ns.front()) ||
           u.to_ns > static_cast<double>(reference.t_ns.back());
  });
  if (updates.size() < kFewestUpdates) return out;
  const Integral truth(reference);
  const Fit fit = best_fit(truth, updates, counter);
  if (fit.line.total <= 0 || fit.line.slope <= 0) return out;
  out.explained = 1 - fit.line.residual / fit.line.total;
  if (out.explained < kFewestExplained) return out;
  if (!counter) out.window_s = Estimate{fit.window_ns / kNsPerS, half_width_of(truth, updates, fit, true) / kNsPerS};
  out.delay_s = Estimate{fit.delay_ns / kNsPerS, half_width_of(truth, updates, fit, false) / kNsPerS};
  if (!counter && out.period_s && !out.period_is_bound)
    out.sampled_share = std::min(1.0, out.window_s->value / *out.period_s);
  if (reference.in_watts) {
    const auto [gain, offset] = gain_and_offset(truth, updates, fit);
    out.gain = gain;
    out.offset_w = offset;
  } else {
    out.low_w = fit.line.low;
    out.high_w = fit.line.low + fit.line.slope;
  }
  return out;
}

}  // namespace ergometer
