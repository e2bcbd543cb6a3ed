// From the record of a calibration to its table and its profile. Used by calibrate.cpp.
#pragma once

#include <string>

#include "store/run_reader.hpp"

namespace ergometer::cli {

// Prints what was found, one table a device, to standard output. Returns the exit code.
int report_calibration(RunReader& reader);

}  // namespace ergometer::cli
