#include "analysis/curve.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/arithmetic.hpp"

namespace ergometer {
namespace {

constexpr std::size_t kBlock = 32;  // readings whose sums are kept together: memory against time to answer

// How often a counter moves, where that is not declared: if it stands still in many steps it is read faster than it
// moves, and the usual distance of two changes is its period; else it is not known to be stale.
std::int64_t observed_period(const Series& series) {
  const auto t = series.t();
  const auto v = series.values();
  std::vector<std::int64_t> distances;
  std::size_t changed = 0, still = 0;
  for (std::size_t i = 1; i < series.size(); ++i) {
    if (v[i] == v[i - 1]) {
      ++still;
      continue;
    }
    if (changed > 0) distances.push_back(t[i] - t[changed]);
    changed = i;
  }
  if (distances.empty() || still * 5 < series.size()) return 0;
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

}  // namespace

void Share::add(const Share& other) {
  amount += other.amount;
  covered_s += other.covered_s;
  variance += other.variance;
  blind_s += other.blind_s;
  bridged += other.bridged;
  clock += other.clock;
  if (other.highest) highest = std::max(highest.value_or(*other.highest), *other.highest);
}

std::int64_t gap_limit(const SensorInfo& sensor, const Channel& channel, std::int64_t usual_ns) {
  std::int64_t limit = std::max<std::int64_t>(5 * usual_ns, channel.window.value_or(Nanos{0}).count());
  // Rows with the device's own times come in bursts: the poll's rhythm says nothing about holes between them.
  if (!sensor.own_time) limit = std::max<std::int64_t>(limit, 3 * sensor.interval.count());
  return limit;
}

Curve::Curve(const Series& series, const CurveOptions& options, bool counter)
    : t_(series.t()), series_(&series), options_(options), counter_(counter) {}

// Called once the levels and the period are known.
void Curve::settle() {
  lag_ns_ = options_.delay_ns;
  if (!counter_) lag_ns_ += options_.window_ns / 2;
  if (counter_ || options_.polled) lag_ns_ += options_.period_ns / 2;
  hold_ns_ = lag_ns_ + (counter_ ? 0 : series_->usual_ns() / 2);
  find_block_maxima();
}

std::optional<std::pair<double, double>> Curve::range() const {
  if (levels_.empty()) return std::nullopt;
  return std::pair(*std::min_element(levels_.begin(), levels_.end()),
                   *std::max_element(block_max_.begin(), block_max_.end()));
}

Curve Curve::of_gauge(const Series& series, const CurveOptions& options) {
  Curve curve(series, options, false);
  const std::size_t n = series.size();
  const auto t = series.t();
  const auto v = series.values();
  curve.levels_ = v;
  curve.block_sums_.reserve(n / kBlock + 1);
  Sums sums;
  for (std::size_t i = 0; i < n; ++i) {
    if (i > 0) {
      if (t[i] - t[i - 1] > options.gap_ns) {
        curve.add_hole(i - 1, 0.5 * (v[i] + v[i - 1]) * static_cast<double>(t[i] - t[i - 1]) / kNsPerS);
      } else {
        curve.add_sums(sums, i);
      }
    }
    if (i % kBlock == 0) curve.block_sums_.push_back(sums);
  }
  curve.settle();
  return curve;
}

// The stretch that ends with reading i.
void Curve::add_sums(Sums& sums, std::size_t i) const {
  const double dt = static_cast<double>(t_[i] - t_[i - 1]) / kNsPerS;
  const double rise = levels_[i] - levels_[i - 1];
  sums.amount += 0.5 * (levels_[i] + levels_[i - 1]) * dt;
  sums.near += square(rise * dt);
  sums.far += i > 1 ? square((levels_[i] - levels_[i - 2]) * dt) : square(rise * dt);
}

// The same steps in the same order as of_gauge, so that every reading has one value.
Curve::Sums Curve::sums_at(std::size_t k) const {
  if (counter_) return {amount_[k], 0, 0};
  Sums sums = block_sums_[k / kBlock];
  for (std::size_t i = k / kBlock * kBlock + 1; i <= k; ++i) {
    if (t_[i] - t_[i - 1] <= options_.gap_ns) add_sums(sums, i);
  }
  return sums;
}

Curve Curve::of_counter(const Series& series, const CounterRules& rules, const CurveOptions& options) {
  Curve curve(series, options, true);
  if (curve.options_.period_ns == 0) curve.options_.period_ns = observed_period(series);
  const std::size_t n = series.size();
  const auto t = series.t();
  const auto v = series.values();
  curve.amount_.resize(n);
  double sum = 0;
  for (std::size_t i = 1; i < n; ++i) {
    const auto step = counter_step(v[i - 1], v[i], Nanos(t[i] - t[i - 1]), rules);
    if (step.delta) {
      sum += *step.delta;
      if (step.kind == StepKind::wrapped) ++curve.log_.wraps;
    } else {
      curve.add_hole(i - 1, 0);
      if (step.kind == StepKind::reset) ++curve.log_.resets;
      if (step.kind == StepKind::ambiguous) {
        ++curve.log_.ambiguous;
        const double least = v[i] >= v[i - 1] ? v[i] - v[i - 1] : *rules.range - v[i - 1] + v[i];
        if (!curve.log_.ambiguous_delta) curve.log_.ambiguous_delta = least;
      }
    }
    curve.amount_[i] = sum;
  }
  curve.find_counter_levels();
  curve.levels_ = curve.own_levels_;
  curve.settle();
  return curve;
}

void Curve::add_hole(std::size_t i, double bridged) {
  const std::int64_t length = t_[i + 1] - t_[i];
  const Hole* last = holes_.empty() ? nullptr : &holes_.back();
  holes_.push_back(
      {t_[i], t_[i + 1], i, length + (last ? last->missing_ns : 0), bridged + (last ? last->bridged : 0.0)});
}

// A counter that is read faster than it moves shows stairs; its level is taken over at least one update period.
void Curve::find_counter_levels() {
  const std::size_t n = t_.size();
  own_levels_.assign(n, 0.0);
  std::size_t hole = 0;
  for (std::size_t from = 0; from + 1 < n;) {
    if (hole < holes_.size() && holes_[hole].index == from) {
      own_levels_[from] = from ? own_levels_[from - 1] : 0.0;
      ++hole;
      ++from;
      continue;
    }
    const std::size_t stop = hole < holes_.size() ? holes_[hole].index : n - 1;
    std::size_t to = from + 1;
    while (to < stop && t_[to] - t_[from] < options_.period_ns) ++to;
    const double level = (amount_[to] - amount_[from]) / (static_cast<double>(t_[to] - t_[from]) / kNsPerS);
    for (std::size_t i = from; i < to; ++i) own_levels_[i] = level;
    from = to;
  }
  if (n > 1) own_levels_[n - 1] = own_levels_[n - 2];
}

void Curve::find_block_maxima() {
  block_max_.resize((levels_.size() + kBlock - 1) / kBlock);
  for (std::size_t b = 0; b < block_max_.size(); ++b) {
    const auto block = levels_.subspan(b * kBlock, std::min(kBlock, levels_.size() - b * kBlock));
    block_max_[b] = *std::max_element(block.begin(), block.end());
  }
}

// Index of the last reading not later than t, -1 if t is before all of them. Gallops from `hint`.
std::ptrdiff_t Curve::find(std::int64_t t, std::size_t hint) const {
  const std::size_t n = t_.size();
  if (n == 0 || t < t_[0]) return -1;
  if (hint >= n || t_[hint] > t) hint = 0;
  std::size_t step = 1, low = hint, high = hint + 1;
  while (high < n && t_[high] <= t) {
    low = high;
    step *= 2;
    high = low + step;
  }
  high = std::min(high, n);
  const auto begin = t_.begin() + static_cast<std::ptrdiff_t>(low);
  const auto end = t_.begin() + static_cast<std::ptrdiff_t>(high);
  return std::upper_bound(begin, end, t) - t_.begin() - 1;
}

// The hole that begins with reading i, or null.
const Hole* Curve::hole_after(std::ptrdiff_t i) const {
  if (holes_.empty() || i < 0) return nullptr;
  const auto it = std::lower_bound(holes_.begin(), holes_.end(), static_cast<std::size_t>(i),
                                   [](const Hole& h, std::size_t index) { return h.index < index; });
  return it != holes_.end() && it->index == static_cast<std::size_t>(i) ? &*it : nullptr;
}

Curve::Point Curve::point(std::int64_t t, std::ptrdiff_t i) const {
  Point p;
  const std::size_t n = t_.size();
  if (n == 0) return p;
  const std::int64_t half = counter_ ? 0 : series_->usual_ns() / 2;
  if (i < 0) {
    p.covered_ns = -(t < t_[0] - half ? half : t_[0] - t);
    p.amount = counter_ ? 0.0 : levels_[0] * static_cast<double>(p.covered_ns) / kNsPerS;
    return p;
  }
  const auto k = static_cast<std::size_t>(i);
  if (!holes_.empty()) {  // what is missing before reading k
    const auto it = std::lower_bound(holes_.begin(), holes_.end(), k,
                                     [](const Hole& h, std::size_t index) { return h.index < index; });
    if (it != holes_.begin()) {
      p.covered_ns = -std::prev(it)->missing_ns;
      p.bridged = std::prev(it)->bridged;
    }
  }
  p.covered_ns += t_[k] - t_[0];
  p.amount = sums_at(k).amount;
  if (k + 1 == n) {
    const std::int64_t past = std::min(t - t_[k], hold_ns_);
    p.covered_ns += past;
    p.amount += levels_[k] * static_cast<double>(past) / kNsPerS;
    return p;
  }
  const double x = static_cast<double>(t - t_[k]);
  const double share = x / static_cast<double>(t_[k + 1] - t_[k]);
  const double rise = counter_ ? 0.0 : (levels_[k + 1] - levels_[k]) * share;
  const double gauge = (levels_[k] + 0.5 * rise) * x / kNsPerS;
  if (hole_after(i)) {
    if (!counter_) p.bridged += gauge;
  } else {
    p.covered_ns += t - t_[k];
    p.amount += counter_ ? (amount_[k + 1] - amount_[k]) * share : gauge;
  }
  return p;
}

std::optional<double> Curve::highest(std::int64_t from, std::ptrdiff_t i, std::int64_t to, std::ptrdiff_t j) const {
  // Readings inside the interval; of a counter, the stretches between readings that it touches.
  std::ptrdiff_t first = i < 0 ? 0 : (counter_ || t_[static_cast<std::size_t>(i)] == from ? i : i + 1);
  std::ptrdiff_t last = j;
  if (counter_ && last > first && t_[static_cast<std::size_t>(last)] == to) --last;
  if (first > last || first >= static_cast<std::ptrdiff_t>(levels_.size())) return std::nullopt;
  auto a = static_cast<std::size_t>(first);
  const auto b = static_cast<std::size_t>(last) + 1;
  double best = levels_[a];
  while (a < b) {
    if (a % kBlock == 0 && a + kBlock <= b) {
      best = std::max(best, block_max_[a / kBlock]);
      a += kBlock;
    } else {
      best = std::max(best, levels_[a++]);
    }
  }
  return best;
}

Share Curve::between(std::int64_t from, std::int64_t to, std::size_t& hint) const {
  Share share;
  if (t_.empty()) return share;
  from += lag_ns_;
  to += lag_ns_;
  const auto i = find(from, hint);
  const auto j = find(to, static_cast<std::size_t>(std::max<std::ptrdiff_t>(i, 0)));
  hint = static_cast<std::size_t>(std::max<std::ptrdiff_t>(i, 0));
  const Point a = point(from, i), b = point(to, j);
  share.covered_s = static_cast<double>(b.covered_ns - a.covered_ns) / kNsPerS;
  if (share.covered_s <= 0) {
    share.bridged = std::max(0.0, b.bridged - a.bridged);
    share.covered_s = 0;
    return share;
  }
  share.amount = b.amount - a.amount;
  share.bridged = b.bridged - a.bridged;
  share.highest = highest(from, i, to, j);
  if (options_.uncertain) judge(from, i, a, to, j, b, share);
  return share;
}

std::optional<double> Curve::last_level(std::int64_t t) const {
  auto i = find(t, 0);
  if (i < 0 || (counter_ && t_.size() < 2)) return std::nullopt;
  if (counter_ && i > 0 && t_[static_cast<std::size_t>(i)] == t) --i;
  return levels_[static_cast<std::size_t>(i)];
}

}  // namespace ergometer
