// The RAPL zones of /sys/class/powercap. Used by the discovery and the controls of this backend.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "device/rapl/domain.hpp"
#include "device/sensor.hpp"

namespace ergometer::rapl {

struct Zone {
  std::filesystem::path energy_file;
  std::string id;   // "intel-rapl:0:1"
  Domain domain;    // as its name says
  Channel channel;  // complete; says also whether it is a duplicate or a mirror
};

// A zone's folder, whatever may be read in it.
struct ZoneFolder {
  std::filesystem::path folder;
  std::string id;    // "intel-rapl:0:1"
  std::string name;  // "package-0", as the kernel says it
  Domain domain;
};

// Every zone with a name; twins on the other bus last. Zones without one are added to `damaged`, if given.
[[nodiscard]] std::vector<ZoneFolder> zone_folders(const HostRoot& root, std::vector<Absence>* damaged = nullptr);

struct PowercapScan {
  std::vector<Zone> zones;          // readable now
  std::vector<std::string> denied;  // energy files that we may not read
  std::vector<Absence> absences;    // unknown names, damaged zones
};

// Reads every zone once; where two zones may mirror each other, thrice.
[[nodiscard]] PowercapScan scan_powercap(const HostRoot& root);

// One row with a column a zone. An Error only when no zone could be read.
[[nodiscard]] std::shared_ptr<Sensor> make_powercap_sensor(std::string name, Nanos interval, std::string note,
                                                           std::vector<Zone> zones);

}  // namespace ergometer::rapl
