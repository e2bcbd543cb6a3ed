// Channels of a sample file that node.json does not describe, inferred from its name and its columns' names
// (docs/run-format.md, "Inferred channels"). Used by RunReader for hand-written and damaged runs.
#pragma once

#include <string>
#include <string_view>

#include "model/sensor_info.hpp"

namespace ergometer {

// `sensor` is the file's stem ("gpu0-samples"), `column` a column after the time columns ("power_w").
[[nodiscard]] Channel infer_channel(std::string_view sensor, const std::string& column);

}  // namespace ergometer
