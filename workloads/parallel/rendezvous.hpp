// How the ranks of a group find each other: a store of c10d on rank 0, in which each leaves its identity. Used by
// group.cpp.
#pragma once

#include "core/result.hpp"
#include "parallel/communicator.hpp"
#include "parallel/peers.hpp"
#include "parallel/rank.hpp"

namespace ergometer::workload {

struct Met {
  StorePtr store;
  Peers peers;
};

// Waits at most `timeout_s` for all. Errors name rank 0's address and the ranks that did not come.
[[nodiscard]] Result<Met> meet(const Rank& rank, double timeout_s);

}  // namespace ergometer::workload
