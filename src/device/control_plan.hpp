// From what a person or a study asks ("gpu/power=80%") to settings of controls: which controls are meant, which value,
// whether the device can do it, in which order. Pure but for reading what is set now. Used by the command line and
// by studies.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/control.hpp"

namespace ergometer {

struct ControlRequest {
  std::string name;   // "gpu/0/power"; "gpu/power": of all GPUs; "visible/power"; "GPU-<uuid>/power"
  std::string value;  // "200W", "80%" of the default limit or of the highest clock, "1200MHz", "performance", "on"
};

struct ControlSetting {
  std::shared_ptr<Control> control;
  ControlValue value;
  std::string asked;  // what was written, if the value was chosen from it: "53%"
};

// "NAME=VALUE". Errors say what to write.
[[nodiscard]] Result<ControlRequest> parse_control_request(std::string_view text);

// The settings that the requests mean, with those that they need. Errors (invalid_argument, not_found): an unknown
// name, with the nearest; a name without a device; a value out of the device's range, with the range or the nearest
// values; a control that is asked for twice. Nothing is clamped; only a percentage is moved to a value that exists.
[[nodiscard]] Result<std::vector<ControlSetting>> plan_controls(std::span<const ControlRequest> requests,
                                                                const ControlDiscovery& found);

// Whether the device takes this value. Errors as above.
[[nodiscard]] Result<void> check_value(const ControlInfo& info, const ControlValue& value);

// By rank, and of a pair of bounds first what widens the range: the lowest never stands above the highest.
void sort_for_setting(std::vector<ControlSetting>& settings);

// From the highest value of a control's range downwards in steps (W or Hz), ending at or above the lowest. Empty if the
// device tells no range. Made from the device's own limits, so every one of them can be set.
[[nodiscard]] std::vector<ControlValue> levels_downward(const ControlInfo& info, double step);

}  // namespace ergometer
