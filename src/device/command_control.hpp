// A control that is set by the site's own command (a sudo rule, a wrapper of the scheduler) and read as before. Used
// where the caller itself may not set limits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/control.hpp"

namespace ergometer {

// Runs `command` (words between blanks) as COMMAND NAME DEVICE_ID VALUE: "gpu/0/power GPU-8a... 200W"; VALUE is "reset"
// for what cannot be read back. It must answer within 30 s, with exit code 0 if it has set the value; its standard
// input is empty.
[[nodiscard]] std::shared_ptr<Control> set_by_command(std::shared_ptr<Control> control, const std::string& command);

}  // namespace ergometer
