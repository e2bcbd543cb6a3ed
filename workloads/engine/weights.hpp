// A network's parameters and buffers by name, and values copied into them. Used by checkpoints and by the comparison
// with the reference implementations.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "core/result.hpp"
#include "steps/optimiser.hpp"

namespace ergometer::workload {

// Parameters, then buffers; they share the network's memory.
[[nodiscard]] NamedTensors named_tensors(const torch::nn::Module& network);

// Copies each of `from` into the tensor of the same name. An error lists names that one side lacks, or names the first
// tensor of another size; nothing is copied then.
[[nodiscard]] Result<Done> copy_by_name(const NamedTensors& from, const NamedTensors& to);

// Values of tensors, to be put back into them.
class Snapshot {
 public:
  explicit Snapshot(std::vector<torch::Tensor> tensors);
  void restore() const;

 private:
  std::vector<torch::Tensor> tensors_;
  std::vector<torch::Tensor> values_;
};

}  // namespace ergometer::workload
