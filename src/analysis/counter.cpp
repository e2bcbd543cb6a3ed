#include "analysis/counter.hpp"

namespace ergometer {

CounterStep counter_step(double before, double after, Nanos elapsed, const CounterRules& rules) {
  // A reading above the stated range shows that the statement is wrong; it is then not used.
  const bool ranged = rules.range && *rules.range > 0 && before <= *rules.range && after <= *rules.range;
  const double elapsed_s = seconds(elapsed);
  if (ranged && elapsed_s > *rules.range / rules.max_power_w.value_or(kUnknownSustainedPower))
    return {StepKind::ambiguous, std::nullopt};
  if (after >= before) return {StepKind::normal, after - before};
  if (ranged) {
    const double turned = (*rules.range - before) + after;
    const double bound_w = 1.5 * rules.max_power_w.value_or(kUnknownMaxPower);
    if (turned <= bound_w * elapsed_s) return {StepKind::wrapped, turned};
  }
  return {StepKind::reset, std::nullopt};
}

}  // namespace ergometer
