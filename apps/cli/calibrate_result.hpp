// From the record of a calibration to its table and its profile. Used by calibrate.cpp.
#pragma once

#include <filesystem>

#include "store/run_reader.hpp"

namespace ergometer::cli {

// Prints what was found, one table a device, to standard output, and writes a profile of each device to the folder
// `profiles`. Returns the exit code.
int report_calibration(RunReader& reader, const std::filesystem::path& profiles);

}  // namespace ergometer::cli
