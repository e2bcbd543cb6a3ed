#include "core/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace ergometer::workload {

int usable_processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace ergometer::workload
