// The perf `power` PMU: what it offers and a sensor that reads all its events. Used by the discovery of this backend.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/rapl/domain.hpp"
#include "device/rapl/powercap.hpp"
#include "device/sensor.hpp"

namespace ergometer::rapl {

// The system calls that a file tree cannot stand for; tests replace them.
struct PerfCalls {
  // perf_event_open of one counting event for all processes of `cpu` into the group of `group_fd` (-1: a new group),
  // to be read as PERF_FORMAT_GROUP. A descriptor, or minus errno.
  std::function<int(std::uint32_t type, std::uint64_t config, int cpu, int group_fd)> open;
  // read(2).
  std::function<ssize_t(int fd, void* buffer, std::size_t size)> read;
};
[[nodiscard]] PerfCalls system_perf_calls();

struct PerfEvent {
  std::string name;  // "energy-pkg"
  Kind kind = Kind::unknown;
  std::uint64_t config = 0;
  double joules = 0;  // of one count
};

struct PerfPmu {
  std::uint32_t type = 0;
  std::vector<int> cpus;  // one a die or package
  std::vector<PerfEvent> events;
};

// not_found without the PMU; corrupt, naming the file, if its description makes no sense.
[[nodiscard]] Result<PerfPmu> read_power_pmu(const HostRoot& root);

// Opens all events, one group a CPU of the PMU's mask, and returns a sensor with one row for all of them. Range aside,
// bounds are taken from the zone of the same domain, and a zone tells whether a counter that stands still is stuck.
// Errors: what opening the first event says (permission_denied, not_found, ...). Takes up to 5 ms to see them move.
[[nodiscard]] Result<std::shared_ptr<Sensor>> open_perf_sensor(const HostRoot& root, const PerfPmu& pmu,
                                                               const PerfCalls& calls, const std::vector<Zone>& zones,
                                                               Nanos interval, std::vector<Absence>& absences);

}  // namespace ergometer::rapl
