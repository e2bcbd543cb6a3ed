#include "core/gpu_choice.hpp"

#include <fmt/format.h>

namespace ergometer::workload {

Result<int> gpu_of(int local_rank, int visible) {
  const int index = visible == 1 ? 0 : local_rank;
  if (index < visible) return index;
  return Error{Fault::data, fmt::format("process {} of this machine has no GPU: there are {}", local_rank + 1, visible),
               "start one process a GPU"};
}

}  // namespace ergometer::workload
