#include "analysis/anchor.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/arithmetic.hpp"

namespace ergometer {
namespace {

constexpr double kDenser = 4;
constexpr double kStandardNormal95 = 1.96 * 1.96;
constexpr double kSmearedEdge = 0.12;  // as of an interpolated edge of a gauge that misses nothing

double s_of(std::int64_t ns) { return static_cast<double>(ns) / kNsPerS; }

double usual_s(const Outline& o) { return s_of(o.t.back() - o.t.front()) / static_cast<double>(o.t.size() - 1); }

// The running energy of an outline at a time inside of it.
double energy_at(const Outline& o, std::int64_t t) {
  const auto next = std::upper_bound(o.t.begin(), o.t.end(), t) - o.t.begin();
  if (next == static_cast<std::ptrdiff_t>(o.t.size())) return o.energy_j.back();
  const auto i = static_cast<std::size_t>(next - 1);
  const double x = s_of(t - o.t[i]), dt = s_of(o.t[i + 1] - o.t[i]);
  return o.energy_j[i] + (o.level_w[i] + 0.5 * (o.level_w[i + 1] - o.level_w[i]) * x / dt) * x;
}

class Anchored {
 public:
  Anchored(const Candidate& counter, const Candidate& gauge)
      : counter_(counter), gauge_(gauge), scatter_(counter.outline.t.size()) {}

  // One edge of an interval: energy, and its variances.
  struct Edge {
    std::size_t stretch = 0;
    double x = 0;  // part of the stretch before the edge
    double energy_j = 0, variance = 0;
  };
  [[nodiscard]] std::optional<Edge> at(std::int64_t t) {
    const auto& c = counter_.outline;
    const std::int64_t on_counter = t + counter_.lag_ns;
    const auto next = std::upper_bound(c.t.begin(), c.t.end(), on_counter) - c.t.begin();
    if (next == 0 || next == static_cast<std::ptrdiff_t>(c.t.size())) return std::nullopt;
    Edge e;
    e.stretch = static_cast<std::size_t>(next - 1);
    const std::int64_t begin = c.t[e.stretch], end = c.t[e.stretch + 1];
    e.x = s_of(on_counter - begin) / s_of(end - begin);
    const double sum = c.energy_j[e.stretch + 1] - c.energy_j[e.stretch];
    // The gauge's own times of the same three moments.
    const std::int64_t shift = gauge_.lag_ns - counter_.lag_ns;
    const auto& g = gauge_.outline;
    if (begin + shift < g.t.front() || end + shift >= g.t.back()) return std::nullopt;
    const double from = energy_at(g, begin + shift), to = energy_at(g, end + shift);
    const double part = to > from ? (energy_at(g, t + gauge_.lag_ns) - from) / (to - from) : e.x;
    e.energy_j = c.energy_j[e.stretch] + sum * part;
    const double scale = to > from ? sum / (to - from) : 1;
    e.variance = square(scale) *
                 (scatter_of(e.stretch, begin + shift, end + shift) * e.x * (1 - e.x) + edge_of(t + gauge_.lag_ns));
    return e;
  }
  // Each reading of the counter is up to one update old; what two edges take from the same reading cancels.
  [[nodiscard]] double stale(const Edge& a, const Edge& b) const {
    const auto& c = counter_.outline;
    const double period_s = s_of(counter_.reading.period_ns);
    const auto level = [&](std::size_t i) {
      double w = 0;
      for (const std::size_t k : {i == 0 ? i : i - 1, std::min(i, c.t.size() - 2)})
        w = std::max(w, (c.energy_j[k + 1] - c.energy_j[k]) / s_of(c.t[k + 1] - c.t[k]));
      return w;
    };
    double sum = 0;
    const auto add = [&](std::size_t reading, double weight) {
      sum +=
          square(weight * level(reading)) * square(period_s) / 12 + square(weight * counter_.reading.resolution) / 12;
    };
    if (a.stretch == b.stretch) {
      add(a.stretch, b.x - a.x);
      add(a.stretch + 1, b.x - a.x);
      return sum;
    }
    add(a.stretch, 1 - a.x);
    add(b.stretch + 1, b.x);
    if (a.stretch + 1 == b.stretch) {
      add(b.stretch, 1 - b.x - a.x);
    } else {
      add(a.stretch + 1, a.x);
      add(b.stretch, 1 - b.x);
    }
    return sum;
  }

  // Between two readings of the counter: what each says, and the variance that their difference may have.
  struct Stretch {
    double counter_j = 0, gauge_j = 0, variance = 0;
  };
  [[nodiscard]] std::optional<Stretch> stretch(std::size_t k) {
    const auto& c = counter_.outline;
    const auto& g = gauge_.outline;
    const std::int64_t shift = gauge_.lag_ns - counter_.lag_ns;
    const std::int64_t begin = c.t[k] + shift, end = c.t[k + 1] + shift;
    if (begin < g.t.front() || end >= g.t.back()) return std::nullopt;
    const double sum = c.energy_j[k + 1] - c.energy_j[k];
    const double level = sum / s_of(c.t[k + 1] - c.t[k]);
    return Stretch{sum, energy_at(g, end) - energy_at(g, begin),
                   scatter_of(k, begin, end) + edge_of(begin) + edge_of(end) +
                       square(level * s_of(counter_.reading.period_ns)) / 6};
  }

 private:
  // Variance of the gauge's energy over a stretch: what it does not look at (docs/method.md, section 7).
  double scatter_of(std::size_t stretch, std::int64_t begin, std::int64_t end) {
    auto& known = scatter_[stretch];
    if (known) return *known;
    const auto& g = gauge_.outline;
    const auto first = static_cast<std::size_t>(std::lower_bound(g.t.begin(), g.t.end(), begin) - g.t.begin());
    const auto last = static_cast<std::size_t>(std::lower_bound(g.t.begin(), g.t.end(), end) - g.t.begin());
    double near = 0, far = 0;
    for (std::size_t i = std::max<std::size_t>(first, 2); i < last; ++i) {
      const double dt = s_of(g.t[i] - g.t[i - 1]);
      near += 0.5 * square((g.level_w[i] - g.level_w[i - 1]) * dt);
      far += 0.5 * square((g.level_w[i] - g.level_w[i - 2]) * dt);
    }
    const double slow = std::clamp(far - near, 0.0, near), fast = near - slow;
    const double unseen = std::max(0.0, 1 - gauge_.reading.share);
    known = fast * unseen + slow / 6 * square(unseen);
    return *known;
  }
  // The edge itself, in the stretch between two readings of the gauge.
  [[nodiscard]] double edge_of(std::int64_t t) const {
    const auto& g = gauge_.outline;
    const auto k = static_cast<std::size_t>(std::upper_bound(g.t.begin(), g.t.end(), t) - g.t.begin());
    const std::size_t from = k > 2 ? k - 2 : 0, to = std::min(k + 1, g.t.size() - 1);
    const auto [low, high] = std::minmax_element(g.level_w.begin() + static_cast<std::ptrdiff_t>(from),
                                                 g.level_w.begin() + static_cast<std::ptrdiff_t>(to) + 1);
    const double swing = *high - *low, dt = s_of(g.t[std::min(k, g.t.size() - 1)] - g.t[k - 1]);
    const double share = std::min(1.0, gauge_.reading.share);
    const double shape = share >= 0.999 ? square(kSmearedEdge * (dt + s_of(gauge_.reading.window_ns)))
                                        : square(dt) * (square(1 - share) / 30 + square(share) / 90);
    return square(swing) * (shape + square(gauge_.reading.timing_s));
  }

  const Candidate& counter_;
  const Candidate& gauge_;
  std::vector<std::optional<double>> scatter_;
};

}  // namespace

bool can_anchor(const Candidate& counter, const Candidate& gauge) {
  if (counter.channel.behaviour != Behaviour::counter || gauge.channel.behaviour != Behaviour::gauge) return false;
  if (!counter.channel.measured || !gauge.channel.measured) return false;
  if (!counter.holes.empty() || !gauge.holes.empty()) return false;
  if (counter.outline.t.size() < 2 || gauge.outline.t.size() < 2) return false;
  return usual_s(counter.outline) > kDenser * usual_s(gauge.outline);
}

void anchor(Candidate& counter, const Candidate& gauge, const Rows& rows) {
  Anchored curve(counter, gauge);
  std::vector<Share> shares(counter.shares.size());
  std::vector<bool> whole(counter.shares.size(), true);
  for (const auto& piece : rows.pieces) {
    if (!whole[piece.row]) continue;
    // An edge outside of the readings is left to the counter alone.
    const auto a = piece.begin == kUnknownBegin ? std::nullopt : curve.at(piece.begin);
    const auto b = !a || piece.end == kUnknownEnd ? std::nullopt : curve.at(piece.end);
    if (!a || !b) {
      whole[piece.row] = false;
      continue;
    }
    Share share;
    share.amount = std::max(0.0, b->energy_j - a->energy_j);
    share.variance = kStandardNormal95 * (a->variance + b->variance + curve.stale(*a, *b));
    shares[piece.row].add(share);
  }
  for (std::size_t row = 0; row < shares.size(); ++row) {
    auto& share = counter.shares[row];
    if (!whole[row] || share.covered_s <= 0) continue;
    shares[row].covered_s = share.covered_s;
    shares[row].blind_s = gauge.shares[row].blind_s;
    shares[row].clock = gauge.shares[row].clock;
    const auto highest = share.highest;  // calibrated already
    share = shares[row];
    calibrate(counter.channel, share);
    share.highest = highest;
  }
  counter.anchored = true;
  counter.blind_ns = std::max(gauge.blind_ns, counter.reading.period_ns);
}

double contradiction(const Candidate& counter, const Candidate& gauge) {
  constexpr std::size_t kFewest = 5;
  constexpr double kUnlikely = 3;  // times the variance that is expected, over five stretches or more
  Anchored curve(counter, gauge);
  double apart2 = 0, expected = 0, energy2 = 0;
  std::size_t n = 0;
  for (std::size_t k = 0; k + 1 < counter.outline.t.size(); ++k) {
    const auto stretch = curve.stretch(k);
    if (!stretch) continue;
    apart2 += square(stretch->gauge_j - stretch->counter_j);
    expected += stretch->variance;
    energy2 += square(stretch->counter_j);
    ++n;
  }
  if (n < kFewest || energy2 <= 0 || apart2 <= kUnlikely * expected) return 0;
  return std::sqrt(kStandardNormal95 * apart2 / energy2);
}

}  // namespace ergometer
