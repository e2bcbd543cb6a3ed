// The workloads of this program, in the order of `ergometer-workload list`. A new network is one entry here.
#pragma once

#include <string_view>
#include <vector>

#include "core/workload.hpp"

namespace ergometer::workload {

[[nodiscard]] const std::vector<Workload>& workloads();
// A usage error that names the nearest workload if there is none of this name.
[[nodiscard]] Result<const Workload*> find_workload(std::string_view name);

}  // namespace ergometer::workload
