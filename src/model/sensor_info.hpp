// SensorInfo and Absence: what a sensor offers, and why one is missing. Declared by a backend, stored in node.json.
#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "model/channel.hpp"

namespace ergometer {

// One sensor is one interface read by one thread and one sample file.
struct SensorInfo {
  std::string name;                // file name of its samples, unique in the node: "gpu0-power"
  std::string interface;           // backend and variant: "nvml", "rapl-perf", "rapl-powercap", "hwmon", ...
  std::vector<Channel> channels;   // columns of its sample file after the time columns, in this order
  Nanos interval{0};               // how often it is read
  // true: rows carry the device's own time. false: a row's time is the middle of its read, and the file has the
  // column read_ns, the width of that read.
  bool own_time = false;
  std::string note;
};

// A sensor, device or channel that is not there, with the reason and what would bring it.
struct Absence {
  std::string interface;  // "rapl", "nvml", ...
  std::string what;       // the missing thing: "package energy", "GPU 2 power"
  std::string reason;     // e.g. "permission denied: /sys/class/powercap/intel-rapl:0/energy_uj"
  std::string remedy;     // e.g. "run: sudo chmod a+r ..., or sysctl kernel.perf_event_paranoid=0"
  // It is there and this user may not read it: the daemon may. Only while sensors are looked for, not recorded.
  bool forbidden = false;
};

}  // namespace ergometer
