// A power meter's file on the time axis of a run. Used by check-meter and calibrate.
#pragma once

#include <string>

#include "command.hpp"
#include "device/meter/import.hpp"
#include "model/manifest.hpp"

namespace ergometer::cli {

// Wall times are mapped by the nearest pair of the run's clocks, which must have one; column, unit and clock as the
// settings [meter] say. Errors: of read_meter_file.
[[nodiscard]] Result<meter::Imported> read_meter_of_run(const std::string& path, const Manifest& manifest,
                                                        const Context& context);

}  // namespace ergometer::cli
