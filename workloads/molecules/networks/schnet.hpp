// SchNet (Schuett et al. 2017, arXiv:1706.08566) as torch_geometric.nn.models.SchNet 2.8 builds it. Used by
// workloads.cpp.
#pragma once

#include <torch/torch.h>

#include "molecules/inputs.hpp"
#include "molecules/networks/layers.hpp"

namespace ergometer::workload::molecules {

// 455,809 parameters, named as the reference's. Its state_dict has each `mlp` of a block a second time, as `conv.nn`;
// here it is registered once, as `mlp`.
struct SchnetImpl : torch::nn::Module {
  static constexpr float kCutoff = 10;  // angstrom

  SchnetImpl();
  // Normalised energies [molecules, dummies last]: fp32.
  torch::Tensor forward(const Inputs& inputs);
  // distance [E] to [6, E, 128], a filter for each block. They fall to 0 at 10 angstrom.
  torch::Tensor filters(const torch::Tensor& distance);

  torch::nn::Embedding embedding;
  GaussianBasis distance_expansion;
  torch::nn::ModuleList interactions;
  torch::nn::Linear lin1, lin2;
};
TORCH_MODULE(Schnet);

}  // namespace ergometer::workload::molecules
