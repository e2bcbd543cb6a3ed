// Discovery of the procfs backend; see README.md in this folder for its channels.
#pragma once

#include "device/sensor.hpp"

namespace ergometer {

// Sensors `tree`, `system` and `cpus`, and the composition of the node (describe_node).
void discover_procfs(const Host& host, const DiscoverOptions& options, Discovery& out);

// Fills in what the kernel says about the node: names, CPUs, memory and the limits of the own control group. What it
// does not say stays unset.
void describe_node(const Host& host, Node& node);

}  // namespace ergometer
