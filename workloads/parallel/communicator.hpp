// c10d's collective operations behind Group, across LibTorch's versions. Used by group.cpp and the gradient buckets.
#pragma once

#include <torch/torch.h>
#include <torch/version.h>

#include <string>

// Gloo's and NCCL's groups are Backends since LibTorch 2.0; before, they were ProcessGroups with the same operations.
#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "core/result.hpp"
#include "parallel/rank.hpp"

namespace ergometer::workload {

#if TORCH_VERSION_MAJOR >= 2
using Communicator = c10d::Backend;
#else
using Communicator = c10d::ProcessGroup;
#endif
using CommunicatorPtr = c10::intrusive_ptr<Communicator>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

// Connects to the other ranks, which do the same now. `one_machine`: all ranks are on this one. LibTorch's and Gloo's
// exceptions pass through; an error where the build has not this kind.
[[nodiscard]] Result<CommunicatorPtr> connect_gloo(const StorePtr& store, const Rank& rank, bool one_machine);
[[nodiscard]] Result<CommunicatorPtr> connect_nccl(const StorePtr& store, const Rank& rank);

}  // namespace ergometer::workload
