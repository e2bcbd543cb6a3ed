// Replay: recorded sample files as sensors, their rows delivered again at the pace at which they were recorded. For
// tests of everything above the sensors, and to look at somebody's recording as if it were happening.
#pragma once

#include <string>

#include "device/sensor.hpp"

namespace ergometer {

// `file` is one sample file (CSV with t_ns and columns with unit suffixes, also .csv.zst's unpacked form). Its first
// row happens when discovery happens. Channels follow from the column names: *_w is a power, *_j an energy counter,
// *_ratio a share; the domain from the file's name ("gpu0-samples" is gpu/0), which must not collide with another
// sensor of the run. Errors: a file that is missing, has no t_ns column, no row, or a value that is no number (named
// with its line).
[[nodiscard]] Result<void> discover_replay(const Host& host, const std::string& file, Discovery& out);

}  // namespace ergometer
