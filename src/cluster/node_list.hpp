// Slurm's short forms: lists of nodes ("n[1-3,07-09],a") and of counts ("2(x3),1"). Pure; used by launch and by the
// readers of Slurm's output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ergometer {

// The names in the order of the list; several brackets in a name multiply, leading zeros are kept. Errors
// (invalid_argument, with the list): a bracket without its other, a range that is none, more than 200,000 names.
[[nodiscard]] Result<std::vector<std::string>> expand_node_list(std::string_view list);

// One number a node, as SLURM_STEP_TASKS_PER_NODE has it. Errors as above.
[[nodiscard]] Result<std::vector<int>> expand_counts(std::string_view list);

}  // namespace ergometer
