#include "model/clock_map.hpp"

#include <algorithm>
#include <cmath>

namespace ergometer {
namespace {

// A crystal changes its rate by less than that while a run goes on, beside what the offsets show (a few ppm over tens
// of degrees; discipline by NTP moves as much).
constexpr double kWander = 10e-6;
// Two clocks that nobody compared again: crystals are within 100 ppm of each other.
constexpr double kUnseen = 100e-6;

constexpr std::int64_t kFarthest = std::int64_t{1} << 61;

std::int64_t rounded(double ns) { return std::llround(std::min(ns, static_cast<double>(kFarthest))); }

// Offset of a wall clock against its own monotonic clock, and its bound, by the pair next to a wall time. Wall clocks
// may have been set back between pairs; any pair near the place does then.
ClockOffset wall_at(const std::vector<ClockPair>& pairs, WallTime wall) {
  const auto next = std::partition_point(pairs.begin(), pairs.end(), [&](const ClockPair& p) { return p.wall < wall; });
  const ClockPair& nearest = next == pairs.end() ? pairs.back() : *next;
  return {nearest.mono, Nanos(to_ns(nearest.wall) - to_ns(nearest.mono)), nearest.error.value_or(kUnknownWallError)};
}

}  // namespace

ClockMap::ClockMap(std::vector<ClockOffset> offsets) {
  std::stable_sort(offsets.begin(), offsets.end(),
                   [](const ClockOffset& a, const ClockOffset& b) { return a.at < b.at; });
  for (const ClockOffset& o : offsets) {
    const Knot knot{to_ns(o.at), o.offset.count(), std::abs(o.error.count())};
    const bool sane = std::abs(knot.own) < kFarthest && std::abs(knot.offset) < kFarthest && knot.error < kFarthest;
    const bool forward = knots_.empty() || (knot.own > knots_.back().own &&
                                            knot.own + knot.offset > knots_.back().own + knots_.back().offset);
    if (sane && forward)
      knots_.push_back(knot);
    else
      ++rejected_;
  }
}

// Of the offset over the stretch after knot k, in ns a ns.
double ClockMap::slope(std::size_t k) const {
  return static_cast<double>(knots_[k + 1].offset - knots_[k].offset) /
         static_cast<double>(knots_[k + 1].own - knots_[k].own);
}

// How fast the true offset may leave the straight line over that stretch: what the rate was seen to change by.
double ClockMap::wander(std::size_t k) const {
  double change = kWander;
  if (k > 0) change = std::max(change, std::abs(slope(k) - slope(k - 1)));
  if (k + 2 < knots_.size()) change = std::max(change, std::abs(slope(k + 1) - slope(k)));
  return change;
}

ClockMap::Knot ClockMap::at(std::int64_t own_ns) const {
  if (knots_.empty()) return {own_ns, 0, 0};
  const auto next = std::upper_bound(knots_.begin(), knots_.end(), own_ns,
                                     [](std::int64_t t, const Knot& knot) { return t < knot.own; });
  if (next == knots_.begin() || next == knots_.end()) {
    const Knot& outer = next == knots_.begin() ? knots_.front() : knots_.back();
    double rate = kUnseen;
    if (knots_.size() > 1) rate += std::abs(slope(next == knots_.begin() ? 0 : knots_.size() - 2));
    const auto away = std::abs(static_cast<double>(own_ns) - static_cast<double>(outer.own));
    return {own_ns, outer.offset, rounded(static_cast<double>(outer.error) + rate * away)};
  }
  const auto k = static_cast<std::size_t>(next - knots_.begin()) - 1;
  const Knot &a = knots_[k], &b = knots_[k + 1];
  const double x = static_cast<double>(own_ns - a.own), length = static_cast<double>(b.own - a.own);
  const double line = slope(k) * x;
  const double error = static_cast<double>(a.error) + static_cast<double>(b.error - a.error) * (x / length);
  return {own_ns, a.offset + std::llround(line), rounded(error + wander(k) * std::min(x, length - x))};
}

std::int64_t ClockMap::to_reference(std::int64_t own_ns) const { return own_ns + at(own_ns).offset; }

void ClockMap::move(std::vector<std::int64_t>& own_ns) const {
  if (knots_.empty()) return;
  std::size_t next = 0;  // the first knot after the time at hand
  for (auto& t : own_ns) {
    if (next > 0 && t < knots_[next - 1].own) next = 0;
    while (next < knots_.size() && knots_[next].own <= t) ++next;
    if (next == 0 || next == knots_.size()) {
      t += (next == 0 ? knots_.front() : knots_.back()).offset;
      continue;
    }
    const Knot& a = knots_[next - 1];
    t += a.offset + std::llround(slope(next - 1) * static_cast<double>(t - a.own));
  }
}

std::int64_t ClockMap::error_ns(std::int64_t reference_ns) const {
  if (knots_.empty()) return 0;
  // The own time is found by the offset of the knot next to it; what that is off by does not matter to the error.
  const auto next = std::lower_bound(knots_.begin(), knots_.end(), reference_ns,
                                     [](const Knot& knot, std::int64_t t) { return knot.own + knot.offset < t; });
  const Knot& near = next == knots_.end() ? knots_.back() : *next;
  return at(reference_ns - near.offset).error;
}

std::int64_t ClockMap::stretch_error_ns(std::int64_t from, std::int64_t to) const {
  if (knots_.empty() || to <= from) return 0;
  double rate = kUnseen;
  if (knots_.size() > 1) {
    rate = kWander;
    for (std::size_t k = 0; k + 1 < knots_.size(); ++k)
      rate = std::max(rate, wander(k) + static_cast<double>(knots_[k].error + knots_[k + 1].error) /
                                            static_cast<double>(knots_[k + 1].own - knots_[k].own));
  }
  return std::min(error_ns(from) + error_ns(to), rounded(rate * static_cast<double>(to - from)));
}

std::vector<ClockOffset> offsets_by_wall(const std::vector<ClockPair>& own, const std::vector<ClockPair>& reference) {
  std::vector<ClockOffset> out;
  if (reference.empty()) return out;
  for (const ClockPair& pair : own) {
    const ClockOffset there = wall_at(reference, pair.wall);
    const Nanos here(to_ns(pair.wall) - to_ns(pair.mono));
    out.push_back({pair.mono, here - there.offset, pair.error.value_or(kUnknownWallError) + there.error});
  }
  return out;
}

}  // namespace ergometer
