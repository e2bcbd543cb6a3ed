// Power limit, locked clocks and persistence mode of NVIDIA GPUs as controls; see README.md in this folder.
#pragma once

#include "base/environment.hpp"
#include "device/control.hpp"
#include "device/host.hpp"

namespace ergometer {

// "gpu/N/power", "gpu/N/clock", "gpu/N/memory-clock", "gpu/N/persistence". `environment` (of the command to be
// measured) decides which GPUs are visible; where CUDA's order is not certain, none is said to be.
void find_nvml_controls(const Host& host, const std::string& nvml_path, const Environment& environment,
                        ControlDiscovery& out);

}  // namespace ergometer
