// The meter backend: a power meter of the node, as a CSV file that another program writes or as a command that prints
// watts. Used by the registry.
#pragma once

#include "device/sensor.hpp"

namespace ergometer {

// Only where asked for: "meter=FILE" or the setting meter.file, "meter-command=COMMAND" or meter.command; further
// settings meter.column, meter.unit, meter.time.
void discover_meter(const Host& host, const DiscoverOptions& options, Discovery& out);

}  // namespace ergometer
