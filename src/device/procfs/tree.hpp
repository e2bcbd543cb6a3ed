// The sensor `tree`: CPU time, memory and disk traffic of the measured process tree. Used by procfs' discovery.
#pragma once

#include <memory>

#include "device/sensor.hpp"

namespace ergometer::procfs {

// Processes below `root_pid` and below `more` (may be null), these themselves excluded. A process once seen stays in
// the tree until it ends, also when its parent ends before it. A further root that lies in the tree already changes
// nothing.
[[nodiscard]] std::shared_ptr<Sensor> make_tree_sensor(const Host& host, int root_pid,
                                                       std::shared_ptr<const ProcessRoots> more = {});

}  // namespace ergometer::procfs
