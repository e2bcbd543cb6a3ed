// What else of a machine draws power, as the kernel's device tree tells: network interfaces, disks, fans, power
// supplies. Names only: none of them has a reading of its power. Used by the registry.
#pragma once

#include "device/sensor.hpp"

namespace ergometer {

// Virtual interfaces and disks are left out: only what has a device behind it. Opens a few files for each; reads no
// value that a chip would have to measure.
void discover_components(const Host& host, const DiscoverOptions& options, Discovery& out);

}  // namespace ergometer
