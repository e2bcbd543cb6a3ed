// The sensors `system` and `cpus`: resource use of the whole node. Used by procfs' discovery.
#pragma once

#include <memory>

#include "device/sensor.hpp"

namespace ergometer::procfs {

// CPU time, memory, disks, network, and the use of the own control group where there is one.
[[nodiscard]] std::shared_ptr<Sensor> make_system_sensor(const Host& host);

// Busy time of each CPU that is online now. One that goes offline is missing until it is back; null if none is known.
[[nodiscard]] std::shared_ptr<Sensor> make_cpus_sensor(const Host& host);

}  // namespace ergometer::procfs
