// Factor: one thing that a study varies, and what its levels mean: a limit, a clock, a number of GPUs, a parameter of the
// command. Used by StudyFile, which reads factors, and by everything that acts on a cell.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ergometer {

enum class FactorKind {
  power_limit,      // of the GPUs that the cell uses: "200W", "80%" of the default, a bare number is W
  graphics_clock,   // locked: "1200MHz", "53%" of the highest, a bare number is MHz
  memory_clock,     // the same
  cpu_power_limit,  // of every package, W or % of the design power
  cpu_frequency,    // of every CPU: "2GHz", "80%", a bare number is MHz
  governor,         // of every CPU
  control,          // any other control by its name: "gpu/persistence", "dram/0/power"
  gpus,             // a number of GPUs, or which: "0,2"
  ranks,            // processes
  nodes,            // machines
  environment,      // a variable of the command's environment
  parameter,        // {NAME} in the command
};

struct Factor {
  std::string name;
  FactorKind kind = FactorKind::parameter;
  std::string unit;                 // "W", "MHz", ""
  std::vector<std::string> levels;  // as written; at least one, no two alike
  std::string variable;             // of an environment factor
  int line = 0;                     // in the study file
};

// Names that mean more than a parameter of the command.
[[nodiscard]] const std::vector<std::string>& known_factors();
[[nodiscard]] FactorKind factor_kind(std::string_view name);
[[nodiscard]] std::string factor_unit(FactorKind kind);
// Whether the factor's levels are set through ControlGuard.
[[nodiscard]] bool is_control(FactorKind kind);

// The level that leaves a control as it is found.
inline constexpr std::string_view kDefaultLevel = "default";

// Whether `level` can be one of this factor at all; the device's own range is checked later. Errors say what to write.
[[nodiscard]] Result<void> check_level(const Factor& factor, const std::string& level);
// The level as a control takes it: a bare number gets its unit.
[[nodiscard]] std::string control_value(const Factor& factor, const std::string& level);
// The level as a number in the factor's unit ("200W": 200); unset for a name, a percentage, "default", a list of GPUs (whose
// number it is: "0,2": 2).
[[nodiscard]] std::optional<double> level_number(const Factor& factor, const std::string& level);
// The GPUs that a level such as "0,2" names; empty for a plain number.
[[nodiscard]] std::vector<int> named_gpus(const std::string& level);

}  // namespace ergometer
