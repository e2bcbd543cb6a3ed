// The limits of RAPL zones in /sys/class/powercap as controls; see README.md in this folder.
#pragma once

#include "base/file.hpp"
#include "device/control.hpp"

namespace ergometer {

// "package/0/power" (the long-term limit), "package/0/short-power", "package/0/enabled"; "mmio-power" and so on for the
// twin of a zone on the other bus.
void find_rapl_controls(const HostRoot& root, ControlDiscovery& out);

}  // namespace ergometer
