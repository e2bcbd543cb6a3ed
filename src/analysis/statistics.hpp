// Means, medians and comparisons with 95 % intervals. Pure; used by effects, decisions, `compare`, `study show` and
// reports. Nothing here drops a value: outliers are named, never left out. docs/analysis.md has the formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/arithmetic.hpp"

namespace ergometer {

// A 95 % interval that need not be symmetric.
struct Bounds {
  double low = 0, high = 0;
};

// The centre of repeated values. Without an interval there were too few values to tell one (fewer than two).
struct Centre {
  double value = 0;
  std::optional<Bounds> interval;
  std::size_t count = 0;
};

// The point that Student's t with `dof` degrees of freedom exceeds with probability 1 - p; dof > 0, 0 < p < 1.
[[nodiscard]] double t_quantile(double p, double dof);
// Probability that Fisher's F with these degrees of freedom exceeds f.
[[nodiscard]] double f_tail(double f, double dof1, double dof2);

[[nodiscard]] double mean_of(std::span<const double> values);                  // of at least one
[[nodiscard]] double median_of(std::span<const double> values);                // of at least one
[[nodiscard]] std::optional<double> deviation_of(std::span<const double> values);  // n - 1; unset below two values

// Mean with Student's interval, t s / sqrt(n). Unset for no values.
[[nodiscard]] std::optional<Centre> mean_with_t(std::span<const double> values);

struct Bootstrap {
  std::size_t resamples = 2000;
  std::uint64_t seed = 20220112;  // fixed, so that the same values give the same interval
};
// Percentile intervals, widened for small samples so that they agree with Student's where both hold (T. Hesterberg,
// "What Teachers Should Know About the Bootstrap", Am. Stat. 69, 2015, "expanded percentile interval").
[[nodiscard]] std::optional<Centre> mean_with_bootstrap(std::span<const double> values, const Bootstrap& options = {});
[[nodiscard]] std::optional<Centre> median_with_bootstrap(std::span<const double> values,
                                                          const Bootstrap& options = {});

// Indices of values far from the others: 0.6745 |x - median| / MAD > 3.5 (B. Iglewicz, D. Hoaglin, "How to Detect and
// Handle Outliers", 1993); the mean absolute deviation stands in where the MAD is 0. None among fewer than five values.
[[nodiscard]] std::vector<std::size_t> outliers_of(std::span<const double> values);

// How much A differs from B, as a share of B (0.05: A is 5 % more). Means are geometric: a ratio and its inverse then
// say the same, and a few large values do not rule.
struct Comparison {
  enum class Kind { paired, blocked, unpaired };
  Kind kind = Kind::paired;
  double difference = 0;
  std::optional<Bounds> interval;  // unset below two pairs (or two values of each)
  std::size_t pairs = 0;           // pairs, blocks that hold both, or the smaller of the two counts of values
  double spread = 0;               // standard deviation of the log ratio of one pair
  // The interval is known and does not hold 0.
  [[nodiscard]] bool distinguishable() const { return interval && (interval->low > 0 || interval->high < 0); }
};

struct Pair {
  double a = 0, b = 0;
};
// A value of one side and the block in which it was measured.
struct BlockedValue {
  double value = 0;
  int block = 0;
  bool is_a = true;
};

// All values must be above 0; unset where one is not, or there are none. Paired: Student's interval of ln(a/b).
[[nodiscard]] std::optional<Comparison> compare_paired(std::span<const Pair> pairs);
// Within each block that holds both sides their geometric means make one pair; other blocks tell nothing here.
[[nodiscard]] std::optional<Comparison> compare_blocked(std::span<const BlockedValue> values);
// Welch's interval of the logs (B. L. Welch, Biometrika 34, 1947), for values that share no blocks.
[[nodiscard]] std::optional<Comparison> compare_unpaired(std::span<const double> a, std::span<const double> b);

// Pairs needed to show a true difference of `share` (0.005: 0.5 %) in four cases of five, with the spread that this
// comparison saw: n = ((t(0.975) + t(0.8)) spread / ln(1 + share))^2, t with n - 1 degrees of freedom (J. Cohen,
// "Statistical Power Analysis", 1988, ch. 2). Unset without a spread.
[[nodiscard]] std::optional<std::size_t> pairs_to_show(const Comparison& comparison, double share);

// One sentence: "A uses 7.1 % less energy than B, interval 5.9 to 8.3 %, 12 pairs", or "no difference larger than 1.2 %
// can be seen between A and B in energy, 8 pairs; 30 pairs would show 0.5 %"; of one pair that it tells no interval.
struct VerdictWords {
  std::string_view a, b;
  std::string_view quantity = "energy";
  std::string_view verb = "uses";  // "uses", "takes", "has"
};
[[nodiscard]] std::string verdict_text(const Comparison& comparison, const VerdictWords& words);

}  // namespace ergometer
