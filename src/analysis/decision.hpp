// The decision: which setting to run with, from the time and energy of each. Pareto front, least energy with a bound on
// slowdown, energy-delay products, Zeus's cost, knee; each says which other settings cannot be told from the best. Pure;
// used by `study show` and reports. docs/analysis.md has the formulas and their sources.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/statistics.hpp"
#include "base/result.hpp"
#include "model/study_table.hpp"

namespace ergometer {

// One setting: a cell of a study with its time and energy, each of the same amount of work.
struct Option {
  std::size_t cell = 0;
  std::string name;  // of what varies: "175W"
  Centre time_s, energy_j;
};

// The cells at which both metrics are known, in the study's order. Errors name what is missing.
[[nodiscard]] Result<std::vector<Option>> options_of(const StudyTable& table, const std::string& time_metric,
                                                     const std::string& energy_metric,
                                                     const std::vector<std::size_t>& cells);

// Relative difference of a mean to another: value as a share, with its interval where both repeat.
struct Change {
  double share = 0;
  std::optional<Bounds> interval;
};
[[nodiscard]] Change change_of(const Centre& value, const Centre& reference);

// Options that no other beats in both time and energy, fastest first. `sure` tells whether another option that beats it
// might be noise the other way: options that are beaten, yet not distinguishably, are in `maybe`.
struct ParetoFront {
  std::vector<std::size_t> front;  // indices into the options
  std::vector<std::size_t> maybe;  // beaten by the numbers, but not beyond their intervals
};
[[nodiscard]] ParetoFront pareto_front(std::span<const Option> options);

// The best option under a rule.
struct Pick {
  std::size_t best = 0;             // index into the options
  Change time, energy;              // against the reference
  double score = 0;                 // what the rule minimises
  std::optional<std::size_t> second;
  // Options that the intervals do not tell from the best; if `second` is in it, "the second best is not
  // distinguishable". Empty where intervals are known and apart.
  std::vector<std::size_t> indistinguishable;
  bool intervals_known = true;      // false: settings were measured once each, nothing is known of chance
};

// The option with the most of `factor` (its largest value), the default reference: the uncapped device. Falls back to
// the fastest if the factor is unset or no number.
[[nodiscard]] std::size_t reference_option(const StudyTable& table, std::span<const Option> options,
                                           const std::optional<std::string>& factor);

// Each is unset for no options (or none within the bound). `reference` is an index into the options.
[[nodiscard]] std::optional<Pick> least_energy(std::span<const Option> options, std::size_t reference);
// Least energy among those at most `slowdown` (0.1: 10 %) slower than the reference.
[[nodiscard]] std::optional<Pick> least_energy_within(std::span<const Option> options, std::size_t reference,
                                                      double slowdown);
// E T^delay: 1 is EDP (R. Gonzalez, M. Horowitz, IEEE JSSC 31, 1996), 2 is ED2P (A. Martin et al., 2001).
[[nodiscard]] std::optional<Pick> least_energy_delay(std::span<const Option> options, std::size_t reference, int delay);
// eta E + (1 - eta) P_max T (J. You et al., "Zeus", NSDI 2023, eq. 2); 0 <= eta <= 1, max_power_w the largest cap.
[[nodiscard]] std::optional<Pick> least_zeus_cost(std::span<const Option> options, std::size_t reference, double eta,
                                                  double max_power_w);
// The point of the front farthest from the line through its ends, both axes scaled to 0..1 between them: the least sum of the two (V. Satopaa et al., "Finding a
// 'Kneedle' in a Haystack", 2011). Unset for a front of fewer than three options or one that does not bend inward.
[[nodiscard]] std::optional<Pick> knee(std::span<const Option> options, std::size_t reference);

}  // namespace ergometer
