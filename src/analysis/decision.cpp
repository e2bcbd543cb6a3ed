#include "analysis/decision.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "analysis/study_slice.hpp"

namespace ergometer {
namespace {

// Half-width of the interval of ln(value): what a relative uncertainty becomes.
std::optional<double> log_half_width(const Centre& c) {
  if (!c.interval || !(c.value > 0)) return std::nullopt;
  return std::log1p(0.5 * (c.interval->high - c.interval->low) / c.value);
}

// A number to be small, with the half-width of its interval.
struct Score {
  double value = 0;
  std::optional<double> half_width;
};

// d(score)/d(time) and d(score)/d(energy) carry the half-widths of both (independent, so squares add).
Score scored(double value, const Option& o, double by_time, double by_energy) {
  Score out{value, std::nullopt};
  if (o.time_s.interval && o.energy_j.interval) {
    const double time = 0.5 * (o.time_s.interval->high - o.time_s.interval->low);
    const double energy = 0.5 * (o.energy_j.interval->high - o.energy_j.interval->low);
    out.half_width = std::hypot(by_time * time, by_energy * energy);
  } else if (by_time == 0 && o.energy_j.interval) {
    out.half_width = by_energy * 0.5 * (o.energy_j.interval->high - o.energy_j.interval->low);
  }
  return out;
}

std::optional<Pick> least(std::span<const Option> options, std::size_t reference,
                          const std::vector<std::size_t>& allowed, const std::function<Score(const Option&)>& score) {
  if (allowed.empty() || reference >= options.size()) return std::nullopt;
  std::vector<Score> scores;
  for (const std::size_t i : allowed) scores.push_back(score(options[i]));
  std::vector<std::size_t> order(allowed.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a].value < scores[b].value; });
  Pick out;
  const Score& best = scores[order[0]];
  out.best = allowed[order[0]];
  out.score = best.value;
  out.time = change_of(options[out.best].time_s, options[reference].time_s);
  out.energy = change_of(options[out.best].energy_j, options[reference].energy_j);
  if (order.size() > 1) out.second = allowed[order[1]];
  for (std::size_t k = 1; k < order.size(); ++k) {
    const Score& other = scores[order[k]];
    if (!best.half_width || !other.half_width)
      out.intervals_known = false;
    else if (other.value - best.value <= std::hypot(*best.half_width, *other.half_width))
      out.indistinguishable.push_back(allowed[order[k]]);
  }
  return out;
}

std::vector<std::size_t> all_of(std::span<const Option> options) {
  std::vector<std::size_t> out(options.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = i;
  return out;
}

bool beats(const Option& a, const Option& b) {
  return a.time_s.value <= b.time_s.value && a.energy_j.value <= b.energy_j.value &&
         (a.time_s.value < b.time_s.value || a.energy_j.value < b.energy_j.value);
}

// Both differences are larger than their intervals; unset where one has none.
std::optional<bool> surely_beats(const Option& a, const Option& b) {
  const Change time = change_of(b.time_s, a.time_s), energy = change_of(b.energy_j, a.energy_j);
  if (!time.interval || !energy.interval) return std::nullopt;
  return time.interval->low > 0 && energy.interval->low > 0;
}

}  // namespace

Change change_of(const Centre& value, const Centre& reference) {
  Change out;
  out.share = value.value / reference.value - 1;
  const auto a = log_half_width(value), b = log_half_width(reference);
  if (!a || !b) return out;
  const double half = &value == &reference ? 0 : std::hypot(*a, *b);
  const double middle = std::log1p(out.share);
  out.interval = Bounds{std::expm1(middle - half), std::expm1(middle + half)};
  return out;
}

Result<std::vector<Option>> options_of(const StudyTable& table, const std::string& time_metric,
                                       const std::string& energy_metric, const std::vector<std::size_t>& cells) {
  for (const auto& name : {time_metric, energy_metric})
    if (const auto known = metric_of(table, name); !known) return tl::unexpected(known.error());
  const auto varying = varying_factors(table, cells);
  std::vector<Option> out;
  for (const std::size_t cell : cells) {
    const auto time = centre_in(table, cell, time_metric), energy = centre_in(table, cell, energy_metric);
    if (!time || !energy || !(time->value > 0) || !(energy->value > 0)) continue;
    out.push_back({cell, cell_name(table, cell, varying), *time, *energy});
  }
  return out;
}

ParetoFront pareto_front(std::span<const Option> options) {
  ParetoFront out;
  for (std::size_t i = 0; i < options.size(); ++i) {
    bool beaten = false, maybe = true;
    for (std::size_t j = 0; j < options.size(); ++j) {
      if (j == i || !beats(options[j], options[i])) continue;
      beaten = true;
      maybe = maybe && !surely_beats(options[j], options[i]).value_or(true);
    }
    if (!beaten)
      out.front.push_back(i);
    else if (maybe)
      out.maybe.push_back(i);
  }
  const auto faster = [&](std::size_t a, std::size_t b) { return options[a].time_s.value < options[b].time_s.value; };
  std::stable_sort(out.front.begin(), out.front.end(), faster);
  std::stable_sort(out.maybe.begin(), out.maybe.end(), faster);
  return out;
}

std::size_t reference_option(const StudyTable& table, std::span<const Option> options,
                             const std::optional<std::string>& factor) {
  std::size_t fastest = 0;
  for (std::size_t i = 1; i < options.size(); ++i)
    if (options[i].time_s.value < options[fastest].time_s.value) fastest = i;
  const auto index = factor ? factor_index(table, *factor) : std::nullopt;
  if (!index) return fastest;
  // Among settings with the largest value the fastest.
  std::optional<std::size_t> best;
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto& value = table.factors[*index].values[table.cells[options[i].cell].levels[*index]];
    if (!value || *value < largest) continue;
    if (*value > largest || options[i].time_s.value < options[*best].time_s.value) best = i;
    largest = *value;
  }
  return best.value_or(fastest);
}

std::optional<Pick> least_energy(std::span<const Option> options, std::size_t reference) {
  return least(options, reference, all_of(options), [](const Option& o) { return scored(o.energy_j.value, o, 0, 1); });
}

std::optional<Pick> least_energy_within(std::span<const Option> options, std::size_t reference, double slowdown) {
  if (reference >= options.size()) return std::nullopt;
  std::vector<std::size_t> allowed;
  for (std::size_t i = 0; i < options.size(); ++i)
    if (options[i].time_s.value <= options[reference].time_s.value * (1 + slowdown)) allowed.push_back(i);
  return least(options, reference, allowed, [](const Option& o) { return scored(o.energy_j.value, o, 0, 1); });
}

std::optional<Pick> least_energy_delay(std::span<const Option> options, std::size_t reference, int delay) {
  return least(options, reference, all_of(options), [delay](const Option& o) {
    const double power = std::pow(o.time_s.value, delay);
    return scored(o.energy_j.value * power, o, o.energy_j.value * delay * power / o.time_s.value, power);
  });
}

std::optional<Pick> least_zeus_cost(std::span<const Option> options, std::size_t reference, double eta,
                                    double max_power_w) {
  const double by_time = (1 - eta) * max_power_w;
  return least(options, reference, all_of(options), [&](const Option& o) {
    return scored(eta * o.energy_j.value + by_time * o.time_s.value, o, by_time, eta);
  });
}

std::optional<Pick> knee(std::span<const Option> options, std::size_t reference) {
  const auto front = pareto_front(options).front;
  if (front.size() < 3) return std::nullopt;
  const Option &fast = options[front.front()], &frugal = options[front.back()];
  const double time = frugal.time_s.value - fast.time_s.value, energy = fast.energy_j.value - frugal.energy_j.value;
  if (!(time > 0) || !(energy > 0)) return std::nullopt;
  const auto pick = least(options, reference, front, [&](const Option& o) {
    const double sum = (o.time_s.value - fast.time_s.value) / time + (o.energy_j.value - frugal.energy_j.value) / energy;
    return scored(sum, o, 1 / time, 1 / energy);
  });
  // On the line through the ends the sum is 1.
  if (!pick || !(pick->score < 1) || pick->best == front.front() || pick->best == front.back()) return std::nullopt;
  return pick;
}

}  // namespace ergometer
