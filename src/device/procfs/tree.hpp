// The sensor `tree`: CPU time, memory and disk traffic of the measured process tree. Used by procfs' discovery.
#pragma once

#include <memory>

#include "device/sensor.hpp"

namespace ergometer::procfs {

// Processes below `root_pid`, itself excluded. A process once seen stays in the tree until it ends, also when its
// parent ends before it.
[[nodiscard]] std::shared_ptr<Sensor> make_tree_sensor(const Host& host, int root_pid);

}  // namespace ergometer::procfs
