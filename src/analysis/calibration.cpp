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
constexpr double kWholeTime = 0.98;  // of the reference, covered by readings
constexpr std::size_t kParts = 20;   // stretches of time that are left out in turn for the intervals

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
  double mean_x = 0, mean_y = 0;
};

struct Sums {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  void add(double w, double u, double v) {
    n += w, x += w * u, y += w * v, xx += w * u * u, xy += w * u * v, yy += w * v * v;
  }
  void take(const Sums& o) { n -= o.n, x -= o.x, y -= o.y, xx -= o.xx, xy -= o.xy, yy -= o.yy; }
  [[nodiscard]] Line line() const {
    const double sxx = xx - x * x / n, sxy = xy - x * y / n, syy = yy - y * y / n;
    if (n <= 0 || sxx <= 0) return {0, 0, std::numeric_limits<double>::infinity(), syy, 0, 0};
    const double slope = sxy / sxx;
    return {(y - slope * x) / n, slope, std::max(0.0, syy - slope * sxy), syy, x / n, y / n};
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
Fit best_fit(const Integral& truth, const std::vector<Update>& updates, bool counter, bool same_power) {
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
      for (int j = -2; j <= 2; ++j) {
        const double window =
            counter ? 0 : std::max(0.0, centre.window_ns * (1 + 0.1 * i * step / (5 * kMs)) + i * step * 0.5);
        // A meter shows the very power that is read: then the mean moment of what is averaged is known best. A load's
        // power follows its switch with a rise of its own, which this search would take for a shorter window.
        const double along = same_power ? 0.5 * (window - centre.window_ns) : 0;
        consider(window, centre.delay_ns - along + j * step);
      }
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

// The updates that a small error of their time does not change; nothing where the reference is hardly ever level.
std::optional<std::vector<Update>> level_updates(const Integral& truth, const std::vector<Update>& updates,
                                                 const Fit& fit) {
  constexpr double kMargin = 5e7, kLevel = 0.02;
  constexpr std::size_t kFewest = 12;
  std::vector<Update> out;
  const auto range_of = [&](const std::vector<Update>& of) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const auto& u : of) {
      const double x = shown(truth, u, fit.window_ns, fit.delay_ns);
      low = std::min(low, x);
      high = std::max(high, x);
    }
    return high - low;
  };
  const double whole = range_of(updates);
  for (const auto& u : updates) {
    const double early = shown(truth, u, fit.window_ns, fit.delay_ns + kMargin);
    const double late = shown(truth, u, fit.window_ns, fit.delay_ns - kMargin);
    const double now = shown(truth, u, fit.window_ns, fit.delay_ns);
    if (std::max(std::abs(early - now), std::abs(late - now)) < kLevel * whole) out.push_back(u);
  }
  return out.size() >= kFewest && range_of(out) > 0.5 * whole ? std::optional(std::move(out)) : std::nullopt;
}

// Jackknife over stretches of time: neighbours err together, so single readings would promise too much.
std::array<Estimate, 2> gain_and_offset(const Integral& truth, const std::vector<Update>& all_updates, const Fit& fit) {
  const auto level = level_updates(truth, all_updates, fit);
  const auto& updates = level ? *level : all_updates;
  std::array<Sums, kParts> parts;
  Sums all;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const double x = shown(truth, updates[i], fit.window_ns, fit.delay_ns);
    parts[i * kParts / updates.size()].add(updates[i].weight, x, updates[i].level);
    all.add(updates[i].weight, x, updates[i].level);
  }
  // On level stretches the readings scatter around the line. Elsewhere it is the moment that a reading shows which is
  // uncertain, so an error of the reference: then the reference is fitted by the reading.
  const auto invert = [&](const Line& line) {
    const double gain = level ? 1 / line.slope : (1 - line.residual / line.total) / line.slope;
    return std::array{gain, line.mean_x - gain * line.mean_y};
  };
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

bool inside_gap(const Reference& reference, const Update& u) {
  constexpr double kMargin = 1e9;  // an averaging window of a second looks back so far
  return std::ranges::any_of(reference.gaps, [&](const auto& gap) {
    return u.to_ns > static_cast<double>(gap.first) && u.from_ns < static_cast<double>(gap.second) + kMargin;
  });
}

// Updates that the reference can tell something about.
void keep_known(std::vector<Update>& updates, const Reference& reference) {
  const auto first = static_cast<double>(reference.t_ns.front()), last = static_cast<double>(reference.t_ns.back());
  std::erase_if(updates,
                [&](const Update& u) { return u.from_ns < first || u.to_ns > last || inside_gap(reference, u); });
}

std::vector<Update> updates_of(const Trace& trace, std::size_t index) {
  const Series series(trace, index, false);
  auto updates = find_updates(series, trace.info.own_time);
  return trace.info.channels[index].behaviour == Behaviour::counter ? to_steps(updates) : updates;
}

// The shift of the reference, in steps of 10 ms from 0 outwards, with which the readings go along best.
std::optional<double> coarse_shift_ns(std::vector<Update> updates, const Reference& meter, double most_s,
                                      bool counter) {
  constexpr std::size_t kEnough = 400;
  constexpr double kStep = 1e7;
  constexpr double kBetter = 0.1;  // of two that are nearly as good, as with a periodic load, the nearer one
  if (const std::size_t stride = updates.size() / kEnough + 1; stride > 1) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < updates.size(); i += stride) updates[kept++] = updates[i];
    updates.resize(kept);
  }
  const Integral truth(meter);
  double best = kFewestExplained;
  std::optional<double> shift;
  const auto windows = counter ? std::vector<double>{0} : std::vector<double>{0, 25e6, 1e8, 5e8, 1e9};
  const auto steps = static_cast<int>(most_s * kNsPerS / kStep);
  for (int k = 0; k <= 2 * steps; ++k) {
    const double by = kStep * (k % 2 ? (k + 1) / 2 : -k / 2);
    auto known = updates;
    for (auto& u : known) u.from_ns -= by, u.to_ns -= by;
    keep_known(known, meter);
    if (known.size() < kFewestUpdates) continue;
    for (const double window : windows) {
      const Line line = sums_of(truth, known, window, 0).line();
      if (line.total <= 0 || line.slope <= 0) continue;
      const double explained = 1 - line.residual / line.total;
      if (1 - explained < (1 - best) * (1 - kBetter)) {
        best = explained;
        shift = by;
      }
    }
  }
  return shift;
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
  keep_known(updates, reference);
  if (updates.size() < kFewestUpdates) return out;
  const Integral truth(reference);
  const Fit fit = best_fit(truth, updates, counter, reference.in_watts);
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
    // The energies of the whole time agree, also where the sensor looks at moments that are not the load's usual ones.
    const auto first = reference.t_ns.front(), last = reference.t_ns.back();
    const auto later = static_cast<std::int64_t>(fit.delay_ns + 0.5 * fit.window_ns);
    const Share same = curve.between(first + later, last + later, hint = 0);
    if (reference.gaps.empty() && same.covered_s > kWholeTime * seconds(Nanos(last - first))) {
      const double mean_w =
          (truth.at(static_cast<double>(last)) - truth.at(static_cast<double>(first))) / seconds(Nanos(last - first));
      out.offset_w->value = mean_w - gain.value * same.amount / same.covered_s;
    }
  } else {
    out.low_w = fit.line.low;
    out.high_w = fit.line.low + fit.line.slope;
  }
  return out;
}

Reference reference_of(const std::vector<Row>& rows) {
  Reference out;
  out.in_watts = true;
  std::vector<double> distances;
  for (std::size_t i = 1; i < rows.size(); ++i) distances.push_back(seconds(rows[i].t - rows[i - 1].t));
  if (distances.empty()) return out;
  const double limit_s = 5 * quantile(distances, 0.5);
  for (const auto& row : rows) {
    const std::int64_t t = to_ns(row.t);
    if (row.values.empty() || !row.values[0] || (!out.t_ns.empty() && t <= out.t_ns.back())) continue;
    if (!out.t_ns.empty() && static_cast<double>(t - out.t_ns.back()) > limit_s * kNsPerS)
      out.gaps.emplace_back(out.t_ns.back(), t);
    out.t_ns.push_back(t);
    out.values.push_back(*row.values[0]);
  }
  return out;
}

MeterCalibration calibrate_against_meter(const Trace& trace, std::size_t index, const Reference& meter, double most_s) {
  MeterCalibration out;
  if (meter.t_ns.size() < 2) return out;
  const bool counter = trace.info.channels[index].behaviour == Behaviour::counter;
  const auto shift = coarse_shift_ns(updates_of(trace, index), meter, most_s, counter);
  if (!shift) return out;
  // The fine search begins 20 ms before it and looks for later readings.
  const auto by = static_cast<std::int64_t>(*shift);
  Reference moved = meter;
  for (auto& t : moved.t_ns) t += by;
  for (auto& gap : moved.gaps) gap.first += by, gap.second += by;
  out.channel = calibrate_channel(trace, index, moved);
  if (out.channel.delay_s && out.channel.gain)
    out.later_s =
        Estimate{out.channel.delay_s->value + static_cast<double>(by) / kNsPerS, out.channel.delay_s->uncertainty};
  return out;
}

}  // namespace ergometer
