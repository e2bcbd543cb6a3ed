// Where an interval begins and ends between readings, and how far its energy may be off; docs/method.md, section 7.
#include <algorithm>
#include <cmath>

#include "analysis/arithmetic.hpp"
#include "analysis/curve.hpp"

namespace ergometer {
namespace {

constexpr double kWide = 1.96 * 1.96;  // square of a 95 % half-width over the variance, of a normal distribution
constexpr double kWhole = 0.999;       // from this share on nothing is missed between readings
// Shares of the largest possible error that its standard deviation is, found on simulated loads (docs/method.md).
constexpr double kRough = 0.5;     // a level held up to a mark, where it was already changing
constexpr double kMissed = 0.06;   // a step near a mark that is taken to stand at it, or the reverse
constexpr double kOutside = 2;     // how much more the side outside of a short interval is believed
constexpr double kSmeared = 0.12;  // a step seen through the window

double seconds_of(std::int64_t ns) { return static_cast<double>(ns) / kNsPerS; }

}  // namespace

// Largest change of level next to the stretch after reading k, half as much where it lies one stretch away.
double Curve::step_near(std::size_t k) const {
  const std::size_t n = t_.size();
  const auto rise = [&](std::size_t at) { return at + 1 < n ? std::abs(levels_[at + 1] - levels_[at]) : 0.0; };
  return std::max({rise(k), k > 0 ? 0.5 * rise(k - 1) : 0.0, 0.5 * rise(k + 1)});
}

// Held before the first or after the last reading: what lies there is not known.
Curve::Edge Curve::outer_edge(std::int64_t t, std::size_t k, double plain) const {
  const double away = seconds_of(std::abs(t - t_[k]));
  const double unseen = std::min(away, seconds_of(series_->usual_ns() / 2));
  const double swing = t_.size() > 1 ? step_near(k == 0 ? 0 : k - 1) : 0;
  return {plain, square(0.5 * levels_[k] * unseen) + square(0.5 * swing * away)};
}

// Of a gauge that misses nothing: what lies before the mark from the last readings that cannot have seen it, and what
// lies after it from the first that have it behind them; the load is held from there up to the mark. Where both sides
// are level the area between tells on which side of the mark the step was.
// `trust_left`: how much more an error on the left is suffered than one on the right.
Curve::Edge Curve::held_edge(std::int64_t t, std::size_t i, double plain, double trust_left) const {
  const std::size_t n = t_.size();
  const std::int64_t reach = options_.window_ns / 2 + (options_.polled ? options_.period_ns / 2 : 0);
  std::size_t k = i, m = i + 1;
  while (k > 0 && t_[k] > t - reach) --k;
  while (m + 1 < n && t_[m] < t + reach) ++m;
  const double width = seconds_of(2 * reach + series_->usual_ns());
  double low = levels_[k], high = low, between = 0;
  bool whole = true;
  for (std::size_t x = k + 1; x <= m; ++x) {
    low = std::min(low, levels_[x]);
    high = std::max(high, levels_[x]);
    between += 0.5 * (levels_[x] + levels_[x - 1]) * seconds_of(t_[x] - t_[x - 1]);
    whole &= t_[x] - t_[x - 1] <= options_.gap_ns;
  }
  const double swing = high - low;
  const double mapping = square(options_.timing_s * swing);
  const Edge smeared{plain, square(kSmeared * swing * width) + mapping};
  if (!whole || k == 0 || m + 1 == n || t_[k] > t - reach || t_[m] < t + reach) return smeared;

  const double before_s = seconds_of(t - t_[k]), after_s = seconds_of(t_[m] - t);
  const double at_k = sums_at(k).amount;
  const double from_left = at_k + levels_[k] * before_s, from_right = at_k + between - levels_[m] * after_s;
  const double left_error = std::abs(levels_[k] - levels_[k - 1]) * before_s;
  const double right_error = std::abs(levels_[m + 1] - levels_[m]) * after_s;
  const double plain_error = 0.5 * swing * width;
  if (plain_error <= std::min(left_error, right_error)) return smeared;
  bool left = left_error < trust_left * right_error;
  if (std::max(left_error, right_error) < 0.125 * plain_error)
    left = (from_left - from_right) * (levels_[m] - levels_[k]) > 0;  // the step comes after the mark
  const double rough = kRough * (left ? left_error : right_error);
  return {left ? from_left : from_right, square(rough) + square(kMissed * swing * width) + mapping};
}

// Of a gauge that looks at a part of the time only: the step of the load may be anywhere in the stretch that the mark
// cuts. `begin`: the interval lies after the mark.
double Curve::sampled_edge(std::int64_t t, std::size_t k, bool begin) const {
  const double dt = seconds_of(t_[k + 1] - t_[k]);
  double x = seconds_of(t - t_[k]) / dt;
  if (begin) x = 1 - x;
  const double share = std::min(1.0, options_.share);
  const double shape = (x * x * x / 3 - x * x * x * x / 4) * square(1 - share) + square(share) / 90;
  return square(step_near(k)) *
         (square(dt) * shape + square(options_.timing_s) + square(seconds_of(series_->read_ns(k))) / 12);
}

// A reading of a counter is up to one period stale, and a step of the load may be anywhere in the stretch.
double Curve::counter_edge(std::int64_t t, std::size_t k) const {
  const double dt = seconds_of(t_[k + 1] - t_[k]);
  const double x = std::clamp(seconds_of(t - t_[k]) / dt, 0.0, 1.0);
  double step = 0, level = levels_[k];
  for (const std::size_t next : {k == 0 ? k : k - 1, std::min(k + 1, t_.size() - 2)}) {
    step = std::max(step, std::abs(levels_[next] - levels_[k]));
    level = std::max(level, levels_[next]);
  }
  if (t_.size() == 2) step = level;  // two readings tell nothing about the shape between them
  const double stale_s = seconds_of(options_.period_ns);
  return square(step * dt * x * (1 - x)) / 3 +
         square(level) * (square(stale_s) + square(seconds_of(series_->read_ns(k)))) / 12 +
         square(options_.resolution) / 12;
}

std::int64_t Curve::blind_ns() const {
  const std::int64_t blind = std::max(options_.window_ns, series_->usual_ns());
  return counter_ || options_.polled ? std::max(blind, options_.period_ns) : blind;
}

Curve::Edge Curve::edge(std::int64_t t, std::ptrdiff_t i, double plain, bool begin, Hold hold) const {
  const std::size_t n = t_.size();
  if (n == 0 || hole_after(i)) return {plain, 0};
  if (counter_) {
    if (n < 2 || i < 0 || t > t_[n - 1] + hold_ns_) return {plain, 0};
    return {plain, counter_edge(t, std::min(static_cast<std::size_t>(i), n - 2))};
  }
  if (t < t_[0] - series_->usual_ns() / 2 || t > t_[n - 1] + hold_ns_) return {plain, 0};
  const auto k = static_cast<std::size_t>(std::max<std::ptrdiff_t>(i, 0));
  if (i < 0 || k + 1 == n) return outer_edge(t, k, plain);
  if (hold == Hold::either) return held_edge(t, k, plain, 1);
  if (hold == Hold::rather_outside) return held_edge(t, k, plain, begin ? kOutside : 1 / kOutside);
  return {plain, sampled_edge(t, k, begin)};
}

// Of the readings first .. last, the time between them that a gauge does not look at. How the readings differ from
// their neighbours and from those two away tells slow changes (twice as much over two) from fast ones (as much).
double Curve::between_readings(std::size_t first, std::size_t last) const {
  if (counter_ || last <= first || options_.share >= kWhole) return 0;
  const Sums a = sums_at(first), b = sums_at(last);
  const double near = std::max(0.0, 0.5 * (b.near - a.near)), far = std::max(0.0, 0.5 * (b.far - a.far));
  const double slow = std::clamp(far - near, 0.0, near), fast = near - slow;
  // Polls that are faster than the device show stairs: fewer changes, each of them wider.
  const double stairs =
      options_.polled
          ? std::max(1.0, seconds_of(options_.period_ns) / seconds_of(std::max<std::int64_t>(1, series_->usual_ns())))
          : 1.0;
  const double unseen = 1 - options_.share;
  // Few differences are a poor guide to their own variance.
  const auto n = static_cast<double>(last - first);
  return square(stairs) * (fast * unseen + slow / 6 * square(unseen)) * (n + 2) / n;
}

// Both marks in one stretch: its level is known, not its shape.
double Curve::inside_one_stretch(std::size_t k, double length_s) const {
  double variance = square(step_near(k) * length_s) / 3;
  if (counter_ && t_.size() > 1) {
    k = std::min(k, t_.size() - 2);
    const double dt = seconds_of(t_[k + 1] - t_[k]);
    variance += square(levels_[k] * length_s / dt) * square(seconds_of(options_.period_ns)) / 6;
  }
  return variance;
}

void Curve::judge(std::int64_t from, std::ptrdiff_t i, const Point& a, std::int64_t to, std::ptrdiff_t j,
                  const Point& b, Share& share) const {
  const double length_s = seconds_of(to - from);
  const bool held = !counter_ && options_.share >= kWhole && to - from >= options_.window_ns;
  // Inside of a short interval no reading is free of both edges.
  const bool is_short = to - from < options_.window_ns + 2 * series_->usual_ns();
  const Hold hold = held ? (is_short ? Hold::rather_outside : Hold::either) : Hold::none;
  const Edge begin = edge(from, i, a.amount, true, hold), end = edge(to, j, b.amount, false, hold);
  double variance = begin.variance + end.variance;
  if (held) share.amount = std::max(0.0, end.amount - begin.amount);
  if (!held && i == j && i >= 0)
    variance = std::min(variance, inside_one_stretch(static_cast<std::size_t>(i), length_s));
  if (j > i) variance += between_readings(static_cast<std::size_t>(i + 1), static_cast<std::size_t>(j));
  share.variance = kWide * variance;
  if (!counter_) share.variance += square(0.5 * options_.resolution * share.covered_s);
  // What follows one another without a hole is only blind for the halves of a reading that the marks cut off.
  const bool gapless = counter_ || options_.share >= kWhole;
  share.blind_s = std::min(length_s, seconds_of(blind_ns()) * (gapless ? 0.5 : 1.0));
}

}  // namespace ergometer
