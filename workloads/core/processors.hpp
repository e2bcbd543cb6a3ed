// How many processors there are to compute on. Used by core's threads, the data loader and the launcher of ranks.
#pragma once

namespace ergometer::workload {

// The processors that this process may use, not those of the machine: containers and job managers set the mask.
[[nodiscard]] int usable_processors();

}  // namespace ergometer::workload
