// What two readings of a counter mean: how much it grew, or that nobody can say. Used by Curve for energy, CPU time
// and byte counters.
#pragma once

#include <optional>

#include "base/units.hpp"

namespace ergometer {

enum class StepKind {
  normal,
  wrapped,    // fell, and the range added once is plausible
  reset,      // fell and started anew: the interval has no value
  ambiguous,  // so long ago that the counter may have gone round unseen: the interval has no value
};

struct CounterStep {
  StepKind kind = StepKind::normal;
  std::optional<double> delta;  // >= 0, in the counter's unit; unset for reset and ambiguous
};

// What is known of a counter. max_power_w bounds plausible growth of energy counters.
struct CounterRules {
  std::optional<double> range;
  std::optional<double> max_power_w;
};

// Most power that a domain of unknown maximum is believed to draw when a wrap is judged.
inline constexpr double kUnknownMaxPower = 2000.0;
// The mean power over minutes that is assumed of a domain of unknown maximum when it is judged whether its counter can
// have gone round unseen: the largest thermal design power of a processor socket today.
inline constexpr double kUnknownSustainedPower = 500.0;

// `elapsed` must be positive. A fall is a wrap if the range is known and one turn implies at most 1.5 times the
// maximum power; else it is a reset. Any step over more than range / maximum power is ambiguous.
[[nodiscard]] CounterStep counter_step(double before, double after, Nanos elapsed, const CounterRules& rules);

}  // namespace ergometer
