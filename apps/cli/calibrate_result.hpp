// From the record of a calibration to its table and its profile. Used by calibrate.cpp.
#pragma once

#include <filesystem>

#include "calibrate_meter.hpp"
#include "store/run_reader.hpp"

namespace ergometer::cli {

// Whether calibration looks at a channel: measured power or energy.
[[nodiscard]] bool gives_power(const Channel& channel);

// Prints what was found, one table a device, to standard output, and writes a profile of each device to the folder
// `profiles`; with the readings of a power meter also gain and offset of what it measures. Returns the exit code.
int report_calibration(RunReader& reader, const std::filesystem::path& profiles,
                       const std::optional<MeterReadings>& meter);

}  // namespace ergometer::cli
