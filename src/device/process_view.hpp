// ProcessView: whose a process is that a driver names by its process id. Drivers use the ids of the host; a program in
// a container may see only ids of its own namespace, and then says "unknown" instead of guessing. Used by the nvml
// backend.
#pragma once

#include <memory>
#include <optional>

#include "base/file.hpp"
#include "device/process_roots.hpp"

namespace ergometer {

enum class Owner {
  tree,     // the measured command or a process below it
  foreign,  // somebody else's
  unknown,  // not visible here, or the ids here are not the host's
};

struct ProcessView {
  HostRoot root;
  std::optional<int> tree_root;  // host id of the process above the measured tree; unset: nobody can be told
  std::shared_ptr<const ProcessRoots> more_roots;  // further ones, by ids as this program sees them; null: none
  bool own_ids_are_host_ids = true;
};

// Finds out whether /proc shows the host's process ids (it then lists the kernel's own threads), and which of them is
// `root_pid`, a process id as this program sees it; 0: this program itself. Where /proc is the host's and this program
// lives in a namespace of its own, the line NSpid of /proc/PID/status joins the two numbers; several processes that
// would fit make it unknown. Of further roots only those are told whose number is the host's; elsewhere a process that
// might be below one of them is unknown.
[[nodiscard]] ProcessView view_processes(const HostRoot& root, int root_pid,
                                         std::shared_ptr<const ProcessRoots> more_roots = {});

// `host_pid` as the driver tells it. Reads one small file for each process up to the root of the tree. Thread-safe.
[[nodiscard]] Owner owner_of(const ProcessView& view, int host_pid);

}  // namespace ergometer
