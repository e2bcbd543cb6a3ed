// Sentences of a comparison. Apart from statistics.cpp: words, not numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/statistics.hpp"

namespace ergometer {
namespace {

// "7.1", "0.05": one decimal, small ones with two digits that count.
std::string percent_digits(double share) {
  const double percent = std::abs(share) * 100;
  if (percent >= 0.095 || percent == 0) return fmt::format("{:.1f}", percent);
  return fmt::format("{:.2g}", percent);
}

std::string counted_pairs(const Comparison& c, std::size_t count) {
  const char* one = c.kind == Comparison::Kind::blocked ? "block" : "pair";
  if (c.kind == Comparison::Kind::unpaired) return fmt::format("{} run{} of each", count, count == 1 ? "" : "s");
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

// A round difference below what can be seen now, and how many pairs would show it.
std::string remedy_text(const Comparison& c, double seen) {
  for (const double share : {0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001}) {
    if (share > 0.6 * seen) continue;
    const auto pairs = pairs_to_show(c, share);
    if (!pairs || *pairs <= c.pairs) continue;
    return fmt::format("; {} would show {} %", counted_pairs(c, *pairs), percent_digits(share));
  }
  return "";
}

}  // namespace

std::string verdict_text(const Comparison& c, const VerdictWords& w) {
  const bool less = c.difference < 0;
  const auto difference = fmt::format("{} {} {} % {} {} than {}", w.a, w.verb, percent_digits(c.difference),
                                      less ? "less" : "more", w.quantity, w.b);
  if (!c.interval)
    return fmt::format("{}; with {} nothing is known of chance: repeat both", difference, counted_pairs(c, c.pairs));
  if (!c.distinguishable()) {
    const double seen = std::max(std::abs(c.interval->low), std::abs(c.interval->high));
    return fmt::format("no difference larger than {} % can be seen between {} and {} in {}, {}{}",
                       percent_digits(seen), w.a, w.b, w.quantity, counted_pairs(c, c.pairs), remedy_text(c, seen));
  }
  const double near = less ? c.interval->high : c.interval->low, far = less ? c.interval->low : c.interval->high;
  return fmt::format("{}, interval {} to {} %, {}", difference, percent_digits(near), percent_digits(far),
                     counted_pairs(c, c.pairs));
}

}  // namespace ergometer
