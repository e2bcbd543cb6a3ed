// The scenario of a fake sensor: a power shape with its exact integral, and faults by time. Read from TOML.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "model/channel.hpp"

namespace ergometer::fake {

// Power over time, in seconds since the scenario's start.
struct Shape {
  enum class Kind { constant, square, ramp, steps } kind = Kind::constant;
  double low_w = 0, high_w = 0;          // constant: both equal; ramp: from low to high, then high
  double period_s = 1, duty = 0.5;       // square: high for the first `duty` of each period. ramp: period_s long
  std::vector<double> times_s, values_w; // steps: values_w[i] holds from times_s[i] on; 0 before the first

  [[nodiscard]] double power_w(double t_s) const;
  // Exact integral of power_w from 0 to t_s >= 0, in joules.
  [[nodiscard]] double energy_j(double t_s) const;
};

struct Fault {
  // missing: the value is empty; lost: the read fails; stuck: the last value repeats; reset: a counter restarts from
  // 0 at `from`; spike: a power of `value`; block: a read that begins in the interval lasts until its end.
  enum class Kind { missing, lost, stuck, reset, spike, block } kind = Kind::missing;
  Nanos from{0}, to{0};
  double value = 0;
};

struct SensorSpec {
  std::string name, domain, device;
  Scope scope = Scope::node;
  bool counter = false;                  // an energy counter of the shape; else its power
  Method method = Method::integral;
  bool measured = true, in_total = true;
  Nanos interval = std::chrono::milliseconds(100);
  std::optional<Nanos> update_period;    // the value changes only at multiples of this
  std::optional<double> range_j, max_power_w;
  double initial_j = 0;                  // counter value at the start
  Shape shape;
  std::vector<Fault> faults;
};

// Errors name `source`, the line where known, and the nearest known key or word.
[[nodiscard]] Result<std::vector<SensorSpec>> parse_scenario(std::string_view toml, std::string_view source);

}  // namespace ergometer::fake
