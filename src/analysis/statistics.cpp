#include "analysis/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

namespace ergometer {
namespace {

// Regularised incomplete beta function I_x(a, b) by its continued fraction (DLMF 8.17.22, evaluated by Lentz's method).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const auto guard = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / guard(1 - (a + b) * x / (a + 1)), h = d;
  for (int m = 1; m <= 1000; ++m) {
    const double m2 = 2.0 * m;
    const double even = m * (b - m) * x / ((a + m2 - 1) * (a + m2));
    d = 1 / guard(1 + even * d);
    c = guard(1 + even / c);
    h *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + m2) * (a + m2 + 1));
    d = 1 / guard(1 + odd * d);
    c = guard(1 + odd / c);
    h *= d * c;
    if (std::abs(d * c - 1) < 1e-15) break;
  }
  return h;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  // The fraction converges fast on one side only.
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double t_tail(double t, double dof) { return 0.5 * incomplete_beta(dof / 2, 0.5, dof / (dof + t * t)); }

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

// Linear between order statistics (R's type 7).
double sorted_quantile(const std::vector<double>& sorted, double p) {
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto i = static_cast<std::size_t>(at);
  if (i + 1 >= sorted.size()) return sorted.back();
  return sorted[i] + (at - static_cast<double>(i)) * (sorted[i + 1] - sorted[i]);
}

std::optional<Centre> bootstrap(std::span<const double> values, const Bootstrap& options,
                                const std::function<double(std::span<const double>)>& statistic) {
  if (values.empty()) return std::nullopt;
  Centre out{statistic(values), std::nullopt, values.size()};
  if (values.size() < 2 || options.resamples < 2) return out;
  // Own index arithmetic: std::uniform_int_distribution differs between standard libraries.
  std::mt19937_64 random(options.seed);
  std::vector<double> sample(values.size()), statistics;
  statistics.reserve(options.resamples);
  for (std::size_t r = 0; r < options.resamples; ++r) {
    for (double& v : sample) v = values[random() % values.size()];
    statistics.push_back(statistic(sample));
  }
  std::sort(statistics.begin(), statistics.end());
  const auto n = static_cast<double>(values.size());
  const double tail = normal_cdf(-std::sqrt(n / (n - 1)) * t_quantile(0.975, n - 1));
  out.interval = Bounds{sorted_quantile(statistics, tail), sorted_quantile(statistics, 1 - tail)};
  return out;
}

std::optional<std::vector<double>> logs_of(std::span<const double> values) {
  std::vector<double> out;
  for (const double v : values) {
    if (!(v > 0) || !std::isfinite(v)) return std::nullopt;
    out.push_back(std::log(v));
  }
  if (out.empty()) return std::nullopt;
  return out;
}

Comparison comparison_of(Comparison::Kind kind, std::span<const double> log_ratios) {
  Comparison out;
  out.kind = kind;
  out.pairs = log_ratios.size();
  const double mean = mean_of(log_ratios);
  out.difference = std::expm1(mean);
  if (const auto deviation = deviation_of(log_ratios)) {
    out.spread = *deviation;
    const auto n = static_cast<double>(log_ratios.size());
    const double half = t_quantile(0.975, n - 1) * *deviation / std::sqrt(n);
    out.interval = Bounds{std::expm1(mean - half), std::expm1(mean + half)};
  }
  return out;
}

}  // namespace

double t_quantile(double p, double dof) {
  if (p == 0.5) return 0;
  if (p < 0.5) return -t_quantile(1 - p, dof);
  double low = 0, high = 1;
  while (t_tail(high, dof) > 1 - p && high < 1e12) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-14 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (t_tail(middle, dof) > 1 - p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

double f_tail(double f, double dof1, double dof2) {
  if (!(f > 0)) return 1;
  if (std::isinf(f)) return 0;
  return incomplete_beta(dof2 / 2, dof1 / 2, dof2 / (dof2 + dof1 * f));
}

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

double median_of(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (sorted.size() % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(sorted.begin(), middle));
}

std::optional<double> deviation_of(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double mean = mean_of(values);
  double squares = 0;
  for (const double v : values) squares += square(v - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::optional<Centre> mean_with_t(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  Centre out{mean_of(values), std::nullopt, values.size()};
  if (const auto deviation = deviation_of(values)) {
    const auto n = static_cast<double>(values.size());
    const double half = t_quantile(0.975, n - 1) * *deviation / std::sqrt(n);
    out.interval = Bounds{out.value - half, out.value + half};
  }
  return out;
}

std::optional<Centre> mean_with_bootstrap(std::span<const double> values, const Bootstrap& options) {
  return bootstrap(values, options, mean_of);
}

std::optional<Centre> median_with_bootstrap(std::span<const double> values, const Bootstrap& options) {
  return bootstrap(values, options, median_of);
}

std::vector<std::size_t> outliers_of(std::span<const double> values) {
  constexpr std::size_t kFewest = 5;
  constexpr double kLimit = 3.5;
  std::vector<std::size_t> out;
  if (values.size() < kFewest) return out;
  const double median = median_of(values);
  std::vector<double> distances;
  for (const double v : values) distances.push_back(std::abs(v - median));
  // Both make the scale of a normal distribution: 1 / 0.6745 and sqrt(pi / 2).
  double scale = median_of(distances) / 0.6745;
  if (scale == 0) scale = mean_of(distances) * 1.2533;
  if (scale == 0) return out;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (distances[i] / scale > kLimit) out.push_back(i);
  return out;
}

std::optional<Comparison> compare_paired(std::span<const Pair> pairs) {
  std::vector<double> a, b;
  for (const auto& pair : pairs) {
    a.push_back(pair.a);
    b.push_back(pair.b);
  }
  auto ratios = logs_of(a);
  const auto log_b = logs_of(b);
  if (!ratios || !log_b) return std::nullopt;
  for (std::size_t i = 0; i < ratios->size(); ++i) (*ratios)[i] -= (*log_b)[i];
  return comparison_of(Comparison::Kind::paired, *ratios);
}

std::optional<Comparison> compare_blocked(std::span<const BlockedValue> values) {
  struct Sums {
    double sum[2] = {0, 0};
    double count[2] = {0, 0};
  };
  std::vector<std::pair<int, Sums>> blocks;  // few, in the order of their first value
  for (const auto& v : values) {
    if (!(v.value > 0) || !std::isfinite(v.value)) return std::nullopt;
    auto it = std::find_if(blocks.begin(), blocks.end(), [&](const auto& b) { return b.first == v.block; });
    if (it == blocks.end()) it = blocks.insert(blocks.end(), {v.block, {}});
    it->second.sum[v.is_a ? 0 : 1] += std::log(v.value);
    it->second.count[v.is_a ? 0 : 1] += 1;
  }
  std::vector<double> ratios;
  for (const auto& [block, sums] : blocks)
    if (sums.count[0] > 0 && sums.count[1] > 0)
      ratios.push_back(sums.sum[0] / sums.count[0] - sums.sum[1] / sums.count[1]);
  if (ratios.empty()) return std::nullopt;
  return comparison_of(Comparison::Kind::blocked, ratios);
}

std::optional<Comparison> compare_unpaired(std::span<const double> a, std::span<const double> b) {
  const auto log_a = logs_of(a), log_b = logs_of(b);
  if (!log_a || !log_b) return std::nullopt;
  Comparison out;
  out.kind = Comparison::Kind::unpaired;
  out.pairs = std::min(a.size(), b.size());
  const double mean = mean_of(*log_a) - mean_of(*log_b);
  out.difference = std::expm1(mean);
  const auto deviation_a = deviation_of(*log_a), deviation_b = deviation_of(*log_b);
  if (!deviation_a || !deviation_b) return out;
  out.spread = std::hypot(*deviation_a, *deviation_b);
  const double part_a = square(*deviation_a) / static_cast<double>(a.size());
  const double part_b = square(*deviation_b) / static_cast<double>(b.size());
  double half = 0;
  if (part_a + part_b > 0) {
    // Welch and Satterthwaite's degrees of freedom.
    const double dof = square(part_a + part_b) / (square(part_a) / static_cast<double>(a.size() - 1) +
                                                  square(part_b) / static_cast<double>(b.size() - 1));
    half = t_quantile(0.975, dof) * std::sqrt(part_a + part_b);
  }
  out.interval = Bounds{std::expm1(mean - half), std::expm1(mean + half)};
  return out;
}

std::optional<std::size_t> pairs_to_show(const Comparison& comparison, double share) {
  if (!comparison.interval || !(share > 0)) return std::nullopt;
  constexpr std::size_t kMost = 100000000;
  const double target = std::log1p(share);
  const auto enough = [&](std::size_t n) {
    const auto dof = static_cast<double>(n - 1);
    const double needed = square((t_quantile(0.975, dof) + t_quantile(0.8, dof)) * comparison.spread / target);
    return static_cast<double>(n) >= needed;
  };
  std::size_t high = 2;
  while (!enough(high)) {
    if (high > kMost) return std::nullopt;
    high *= 2;
  }
  std::size_t low = high / 2;
  while (high - low > 1 && high > 2) {
    const std::size_t middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace ergometer
