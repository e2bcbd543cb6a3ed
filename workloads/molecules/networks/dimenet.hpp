// DimeNet (Gasteiger et al. 2020, arXiv:2003.03123) as torch_geometric.nn.models.DimeNet 2.8 builds it: messages along
// edges that depend on the angles to the edges before them. Used by workloads.cpp.
#pragma once

#include <torch/torch.h>

#include "molecules/inputs.hpp"
#include "molecules/networks/basis.hpp"

namespace ergometer::workload::molecules {

// Atoms' elements and the distance to a message: the reference's EmbeddingBlock.
struct DimenetEmbeddingImpl : torch::nn::Module {
  DimenetEmbeddingImpl();
  // rbf [E, 6] to messages [E, 128].
  torch::Tensor forward(const torch::Tensor& rbf, const Inputs& inputs);

  torch::nn::Embedding emb;
  torch::nn::Linear lin_rbf, lin;
};
TORCH_MODULE(DimenetEmbedding);

// The reference's InteractionBlock.
struct DimenetInteractionImpl : torch::nn::Module {
  DimenetInteractionImpl();
  // x [E, 128] to [E, 128]. radial [E, 128]: lin_rbf of the radial basis. angles [N, K 8, K]: of each atom j, for each
  // slot of an edge j to i and each of 8 channels, the weights of the edges k to j by their slots; 0 where k is i or a
  // slot is empty.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& radial, const torch::Tensor& angles,
                        const Inputs& inputs);

  torch::nn::Linear lin_rbf, lin_sbf, lin_kj, lin_ji;
  torch::Tensor W;  // [128, 8, 128]
  torch::nn::ModuleList layers_before_skip;
  torch::nn::Linear lin;
  torch::nn::ModuleList layers_after_skip;
};
TORCH_MODULE(DimenetInteraction);

// 2,100,070 parameters, named as the reference's. The angle is the one at i between j and k, and the radial functions
// with it are of the distance from k to j, both as in the reference (the paper has the angle at j).
struct DimenetImpl : torch::nn::Module {
  static constexpr float kCutoff = 5;  // angstrom

  DimenetImpl();
  // Normalised energies [molecules, dummies last]: fp32.
  torch::Tensor forward(const Inputs& inputs);
  // For each interaction block what its forward() calls angles: [6, N, K 8, K]. vectors [E, 3], distance [E].
  torch::Tensor angular_weights(const torch::Tensor& vectors, const torch::Tensor& distance, const Inputs& inputs);
  // basis [E, 6] to [6 + 7, E, 128]: lin_rbf of the interaction blocks, then of the output blocks, all at once.
  torch::Tensor radial_weights(const torch::Tensor& basis);
  // [T, 7, 6]: the reference's spherical basis of each triplet.
  torch::Tensor triplet_basis(const torch::Tensor& vectors, const torch::Tensor& distance, const Inputs& inputs);

  RadialBasis rbf;
  SphericalBasis sbf;
  DimenetEmbedding emb;
  torch::nn::ModuleList output_blocks;
  torch::nn::ModuleList interaction_blocks;
};
TORCH_MODULE(Dimenet);

}  // namespace ergometer::workload::molecules
