// What /proc/PID tells about one process. Used by the tree sensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/file.hpp"

namespace ergometer::procfs {

struct ProcessStat {
  int ppid = 0;
  bool zombie = false;            // ended, and its parent has not waited for it yet
  std::uint64_t start_ticks = 0;  // with the pid the identity of a process
  double own_s = 0;               // CPU time, user and system
  double children_s = 0;          // of children that ended and were waited for, and theirs
  std::int64_t threads = 0;
  double rss_bytes = 0;  // shared pages count in every process that maps them
};

struct ProcessIo {
  double read_bytes = 0, written_bytes = 0;  // that reached a disk; includes children that were waited for
};

// The command name inside may hold blanks, line ends and parentheses. nullopt for anything but a complete line.
[[nodiscard]] std::optional<ProcessStat> parse_process_stat(std::string_view text, double ticks_per_s,
                                                            double page_bytes);
[[nodiscard]] std::optional<ProcessIo> parse_process_io(std::string_view text);
// Proportional set size in bytes from smaps_rollup: shared pages are divided among their users, so that sums are right.
[[nodiscard]] std::optional<double> parse_pss(std::string_view text);

// The process ids that /proc lists, in its order.
[[nodiscard]] std::vector<int> process_ids(const HostRoot& root);
// Reads /proc/PID/stat; an Error if the process is gone or hidden.
[[nodiscard]] Result<ProcessStat> read_process_stat(const HostRoot& root, int pid);
[[nodiscard]] Result<ProcessIo> read_process_io(const HostRoot& root, int pid);
// Traffic of the children that `pid` waited for: that of the process less that of its threads alive, so what its ended
// threads did is inside.
[[nodiscard]] Result<ProcessIo> read_children_io(const HostRoot& root, int pid);
// Walks the whole page table of the process: milliseconds a gigabyte, during which the process waits to map memory. A
// process without memory of its own (a zombie) has 0.
[[nodiscard]] Result<double> read_pss(const HostRoot& root, int pid);

}  // namespace ergometer::procfs
