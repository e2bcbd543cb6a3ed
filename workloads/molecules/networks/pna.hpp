// Principal neighbourhood aggregation (Corso et al. 2020, arXiv:2004.05718): torch_geometric.nn.PNAConv 2.8 in the
// network of PyTorch Geometric's example for ZINC, adapted to QM9. Used by workloads.cpp.
#pragma once

#include <torch/torch.h>

#include "molecules/inputs.hpp"
#include "molecules/networks/layers.hpp"

namespace ergometer::workload::molecules {

// The reference's PNAConv(75, 75, aggregators mean min max std, scalers identity amplification attenuation, edge_dim
// 50, towers 5, pre_layers 1, post_layers 1, divide_input false).
struct PnaConvImpl : torch::nn::Module {
  PnaConvImpl();
  // x [N, 75], edges [E, 50] to [N, 75].
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& edges, const Inputs& inputs);

  // [N, 5, 300]: mean, minimum, maximum, deviation of each tower's 75 features over the edges into an atom; of none, 0.
  // own [N, 375]: what all messages into an atom have in common; others [E, 375]: the rest.
  static torch::Tensor aggregate(const torch::Tensor& own, const torch::Tensor& others, const Inputs& inputs);

  torch::nn::Linear edge_encoder;
  torch::nn::ModuleList pre_nns, post_nns;
  torch::nn::Linear lin;
  torch::Tensor avg_deg_log;  // aggr_module.avg_deg_log [1]
};
TORCH_MODULE(PnaConv);

// 682,501 parameters. The protocol gives aggregators and scalers alone; what else there is follows the example as it
// was without batch normalisation (which would make a batch's loss depend on its padding): 4 convolutions of 75
// features, 5 towers, a sum over the atoms and three linear layers 75, 50, 25, 1. Open, and decided here: elements are
// embedded by atomic number; edges join atoms nearer than 5 angstrom, and their 50 features are Gaussians of the
// distance (QM9's xyz files have no bonds); the average degree is a constant, below.
struct PnaImpl : torch::nn::Module {
  static constexpr float kCutoff = 5;  // angstrom

  PnaImpl();
  // Normalised energies [molecules, dummies last]: fp32.
  torch::Tensor forward(const Inputs& inputs);

  torch::nn::Embedding node_emb;
  GaussianBasis distance_expansion;
  torch::nn::ModuleList convs;
  torch::nn::Sequential mlp;
};
TORCH_MODULE(Pna);

}  // namespace ergometer::workload::molecules
