// The processes of one data-parallel training, over PyTorch's own c10d: Gloo on CPUs, NCCL on GPUs. Used by training.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "core/result.hpp"
#include "parallel/rank.hpp"

namespace ergometer::workload {

// Every rank calls the same functions in the same order. After an error the group is of no more use.
class Group {
 public:
  // Waits at most `timeout_s` for the others. Alone (size 1) it holds no connection and every function does nothing.
  // On CUDA `device` is this rank's GPU. Errors name the address and the ranks that did not come.
  static Result<std::unique_ptr<Group>> join(const Rank& rank, const torch::Device& device, double timeout_s = 60);
  virtual ~Group() = default;

  virtual const Rank& rank() const = 0;
  // Rank 0's values to all.
  virtual Result<Done> broadcast(const std::vector<torch::Tensor>& tensors) = 0;
  // From now on each backward pass averages the gradients of these parameters over the ranks, in buckets of about
  // 25 MB that are sent while the pass still runs, in the order in which gradients become ready (the reverse of
  // `parameters`). Gradients live in the buckets' memory: they are set to 0 here, and are to be zeroed in place, never
  // replaced. A parameter that a pass does not reach has the gradient that it was left with. Call once, before the
  // first backward pass.
  virtual Result<Done> average_gradients_of(const std::vector<torch::Tensor>& parameters) = 0;
  // After each backward(): waits (on CUDA: lets the current stream wait) until the averages are there. An error names
  // the ranks that were lost, within seconds, where they ran on this machine, and else their address. (NCCL does not
  // see a rank of the same machine end; that is for the launcher, and else for its timeout of 10 minutes.)
  virtual Result<Done> finish_gradients() = 0;
  // Sums over the ranks; double on the CPU.
  virtual Result<std::vector<double>> sum(const std::vector<double>& values) = 0;
};

}  // namespace ergometer::workload
