// The update rules of the workloads (SGD with momentum, Adam, AdamW) as torch.optim computes them. On CUDA they run as
// LibTorch's fused operators, a few launches for all parameters. Used by training.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/workload.hpp"

namespace ergometer::workload {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// One update rule's arithmetic and the tensors that it keeps.
class UpdateRule;

class Optimiser {
 public:
  // Parameters stay the caller's; they must be on their device and in their memory layout already.
  Optimiser(std::vector<torch::Tensor> parameters, const OptimiserFacts& facts);
  ~Optimiser();
  Optimiser(Optimiser&&) noexcept;
  Optimiser& operator=(Optimiser&&) noexcept;

  // One update from the parameters' gradients; a parameter without one stays as it is. Does not wait for the device and
  // may be recorded in a CUDA graph: step count and learning rate are tensors on the device. `found_inf` (scalar fp32
  // on the device, may be undefined): the update is left out where it is not 0. (Before LibTorch 2.3 there are no fused
  // operators; `found_inf` is then waited for, and nothing is recorded: see RecordedWork::available().)
  void step(const torch::Tensor& found_inf = {});
  // Gradients keep their memory and become 0.
  void zero_gradients();
  // Gradients are gone; the next backward pass makes new ones.
  void release_gradients();
  void set_learning_rate(double rate);

  // Everything that a resumed training needs but for the learning rate, which follows the schedule: "step", and
  // "exp_avg.N", "exp_avg_sq.N" or "momentum_buffer.N" of parameter N. The tensors share the optimiser's memory.
  NamedTensors state() const;
  // Copies such a state in. An error where names or sizes differ, and then nothing is changed.
  Result<Done> load(const NamedTensors& state);

 private:
  std::vector<torch::Tensor> parameters_;
  std::unique_ptr<UpdateRule> rule_;
};

}  // namespace ergometer::workload
