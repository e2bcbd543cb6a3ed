#include "parallel/communicator.hpp"

// LibTorch may say that it has NCCL, yet not bring the headers; CMakeLists.txt looks for them.
#ifdef ERGOMETER_WITH_NCCL
#ifndef USE_C10D_NCCL
#define USE_C10D_NCCL
#endif
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

namespace ergometer::workload {

#ifdef ERGOMETER_WITH_NCCL

Result<CommunicatorPtr> connect_nccl(const StorePtr& store, const Rank& rank) {
  using Nccl = c10d::ProcessGroupNCCL;
  return CommunicatorPtr(c10::make_intrusive<Nccl>(store, rank.rank, rank.size, Nccl::Options::create()));
}

#else

Result<CommunicatorPtr> connect_nccl(const StorePtr& store, const Rank& rank) {
  static_cast<void>(store);
  static_cast<void>(rank);
  return Error{Fault::usage, "this build has no NCCL: several ranks cannot train on GPUs",
               "build against a LibTorch with CUDA and the nccl.h of its NCCL (NCCL_INCLUDE), or give --device cpu"};
}

#endif

}  // namespace ergometer::workload
