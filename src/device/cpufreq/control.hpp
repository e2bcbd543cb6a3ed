// Governor and frequency limits of the CPUs (cpufreq policies) as controls; see README.md in this folder.
#pragma once

#include "base/file.hpp"
#include "device/control.hpp"

namespace ergometer {

// "cpu/N/governor", "cpu/N/max-frequency", "cpu/N/min-frequency" of policy N.
void find_cpufreq_controls(const HostRoot& root, ControlDiscovery& out);

}  // namespace ergometer
