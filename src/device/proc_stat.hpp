// CPU time of the node from /proc/stat. Used by procfs (resource channels) and model (the estimate).
#pragma once

#include <map>
#include <optional>
#include <string_view>

namespace ergometer {

// Seconds since boot, summed over what the line stands for. Waiting for I/O is idle; guest time is inside user time.
struct CpuTimes {
  double busy_s = 0;
  double total_s = 0;
};

struct ProcStat {
  CpuTimes all;
  std::map<int, CpuTimes> cpus;  // the CPUs online
};

// `ticks_per_s` is sysconf(_SC_CLK_TCK). nullopt without a readable line of all CPUs; a damaged line of one CPU is left
// out.
[[nodiscard]] std::optional<ProcStat> parse_proc_stat(std::string_view text, double ticks_per_s);

}  // namespace ergometer
