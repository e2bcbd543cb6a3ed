// Effects and interactions of a factorial study: how much each factor changes a metric, with intervals. Pure; used by
// `study show` and reports. A linear model with sum-to-zero coding, fitted by least squares on the logarithm of the
// metric, so that effects are shares that multiply; blocks are taken out first, unequal counts and missing cells are
// allowed. (D. Montgomery, "Design and Analysis of Experiments", ch. 5 and 10; docs/analysis.md.)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/statistics.hpp"
#include "base/result.hpp"
#include "model/study_table.hpp"

namespace ergometer {

// One level of a factor, or one combination of levels of two.
struct LevelEffect {
  std::vector<std::size_t> levels;  // for each factor of the effect an index into its levels
  double change = 0;                // share of the overall geometric mean (-0.1: 10 % less). Of an interaction: what
                                    // the combination adds to both factors' own effects
  std::optional<Bounds> interval;   // 95 %; unset where the runs leave no degree of freedom for the error
};

struct Effect {
  std::vector<std::size_t> factors;  // one: a main effect; two: their interaction. Indices into StudyTable::factors
  std::vector<LevelEffect> levels;   // empty if not estimable
  int dof = 0;
  double share = 0;                    // of the total variance of the log: what is lost if this effect is left out
  std::optional<double> f_ratio, p_value;
  std::string not_estimable;           // why, or ""; "power_limit and clock always change together"
  [[nodiscard]] bool significant() const { return p_value && *p_value < 0.05; }
};

struct Effects {
  std::string metric;
  double mean = 0;                 // geometric, over the levels with equal weight, in the metric's unit
  std::optional<Bounds> interval;  // of the mean
  std::vector<Effect> effects;     // main effects in the study's order, then interactions
  std::size_t runs = 0, left_out = 0;  // used; not used: no valid value, or not above 0
  int blocks = 1;
  int error_dof = 0;
  std::optional<double> error_share;  // standard deviation of what the model leaves, as a share (0.01: 1 %)
  double r_squared = 0;
  std::vector<std::size_t> outliers;  // runs whose residual stands out; they are in the fit
};

// Factors with one level only are passed over. Errors (invalid_argument): no such metric, fewer than two values, no
// factor with two levels.
[[nodiscard]] Result<Effects> effects_of(const StudyTable& table, const std::string& metric, bool interactions = true);

}  // namespace ergometer
