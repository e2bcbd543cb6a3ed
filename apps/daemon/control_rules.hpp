// What a site lets its users set: patterns of controls with limits. Used by the configuration and by ControlDesk.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/control_plan.hpp"

namespace ergometer::daemon {

struct AllowedControl {
  std::string pattern;  // of names, as fnmatch(3) takes it: "gpu/*/power"
  // W or Hz; unset: as far as the device goes.
  std::optional<ControlValue> lowest, highest;
};

// "PATTERN", or "PATTERN=LOW..HIGH" with units: "gpu/*/power=200W..400W". Errors say what to write.
[[nodiscard]] Result<AllowedControl> parse_allowed(std::string_view text);

// Whether the site allows all of `settings`. What an allowed control needs to have an effect is allowed with it.
// Errors: permission_denied, naming the control and what is allowed.
[[nodiscard]] Result<void> check_allowed(const std::vector<ControlSetting>& settings,
                                         const std::vector<AllowedControl>& allowed);

}  // namespace ergometer::daemon
