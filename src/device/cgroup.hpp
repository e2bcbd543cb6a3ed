// The control group of this process, version 1 or 2: its limits and its use. Used by procfs and model.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/file.hpp"

namespace ergometer {

// The strictest limit between the own group and the root of each hierarchy; unset: none. `max`, -1 and the like are
// none. A memory limit is not compared with the physical memory here.
struct CgroupLimits {
  std::optional<double> memory_bytes;
  std::optional<double> cpus;  // quota over period
};
[[nodiscard]] CgroupLimits read_cgroup_limits(const HostRoot& root);

// Files of the own group that hold its use. Each is empty where there is none, as in the root group of version 2.
struct CgroupUsage {
  std::filesystem::path memory_bytes;  // one number
  std::filesystem::path cpu_ns;        // version 1: one number
  std::filesystem::path cpu_stat;      // version 2: a line "usage_usec N"
};
[[nodiscard]] CgroupUsage find_cgroup_usage(const HostRoot& root);

// Seconds from the content of either CPU file (`text` of cpu_stat or of cpu_ns); nullopt if it holds none.
[[nodiscard]] std::optional<double> cgroup_cpu_seconds(std::string_view text);

}  // namespace ergometer
