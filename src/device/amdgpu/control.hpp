// The power cap of AMD graphics cards as a control, through the hwmon files of the kernel driver amdgpu.
#pragma once

#include "base/file.hpp"
#include "device/control.hpp"

namespace ergometer {

// "gpu-card/N/power" of /sys/class/drm/cardN.
void find_amdgpu_controls(const HostRoot& root, ControlDiscovery& out);

}  // namespace ergometer
