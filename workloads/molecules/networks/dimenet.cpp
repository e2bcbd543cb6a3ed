#include "molecules/networks/dimenet.hpp"

#include <cmath>

#include "molecules/networks/layers.hpp"

namespace ergometer::workload::molecules {
namespace {

constexpr std::int64_t kHidden = 128;
constexpr std::int64_t kBlocks = 6;
constexpr std::int64_t kBilinear = 8;
constexpr std::int64_t kSpherical = 7;
constexpr std::int64_t kRadial = 6;
constexpr std::int64_t kBeforeSkip = 1;
constexpr std::int64_t kAfterSkip = 2;
constexpr std::int64_t kOutputLayers = 3;
constexpr std::int64_t kDimenetElements = 95;

torch::nn::Linear orthogonal_linear(std::int64_t in, std::int64_t out, bool bias = true) {
  torch::nn::Linear linear(torch::nn::LinearOptions(in, out).bias(bias));
  glorot_orthogonal(linear->weight);
  if (bias) torch::nn::init::zeros_(linear->bias);
  return linear;
}

}  // namespace

struct DimenetResidualImpl : torch::nn::Module {
  DimenetResidualImpl()
      : lin1(register_module("lin1", orthogonal_linear(kHidden, kHidden))),
        lin2(register_module("lin2", orthogonal_linear(kHidden, kHidden))) {}
  torch::Tensor forward(const torch::Tensor& x) { return x + torch::silu(lin2(torch::silu(lin1(x)))); }

  torch::nn::Linear lin1, lin2;
};

namespace {

torch::nn::ModuleList residuals(std::int64_t count) {
  torch::nn::ModuleList layers;
  for (std::int64_t i = 0; i < count; ++i) layers->push_back(std::make_shared<DimenetResidualImpl>());
  return layers;
}

torch::Tensor run_through(const torch::nn::ModuleList& layers, torch::Tensor x) {
  for (const auto& layer : *layers) x = layer->as<DimenetResidualImpl>()->forward(x);
  return x;
}

}  // namespace

// The reference's OutputBlock: messages into an atom to the atom's share of the energy.
struct DimenetOutputImpl : torch::nn::Module {
  DimenetOutputImpl()
      : lin_rbf(register_module("lin_rbf", orthogonal_linear(kRadial, kHidden, false))),
        lins(register_module("lins", torch::nn::ModuleList())),
        lin(register_module("lin", torch::nn::Linear(torch::nn::LinearOptions(kHidden, 1).bias(false)))) {
    for (std::int64_t i = 0; i < kOutputLayers; ++i) lins->push_back(orthogonal_linear(kHidden, kHidden));
    torch::nn::init::zeros_(lin->weight);
  }
  // x [E, 128] to [N, 1]. radial [E, 128]: lin_rbf of the radial basis.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& radial, const Inputs& inputs) {
    torch::Tensor atoms = sum_by(radial * x, inputs.target, inputs.atoms());
    for (const auto& layer : *lins) atoms = torch::silu(layer->as<torch::nn::Linear>()->forward(atoms));
    return lin(atoms);
  }

  torch::nn::Linear lin_rbf;
  torch::nn::ModuleList lins;
  torch::nn::Linear lin;
};

DimenetEmbeddingImpl::DimenetEmbeddingImpl()
    : emb(register_module("emb", torch::nn::Embedding(kDimenetElements, kHidden))),
      lin_rbf(register_module("lin_rbf", torch::nn::Linear(kRadial, kHidden))),
      lin(register_module("lin", torch::nn::Linear(3 * kHidden, kHidden))) {
  torch::nn::init::uniform_(emb->weight, -std::sqrt(3.0), std::sqrt(3.0));
}

torch::Tensor DimenetEmbeddingImpl::forward(const torch::Tensor& rbf, const Inputs& inputs) {
  const torch::Tensor atoms = emb(inputs.elements);
  const torch::Tensor distance = torch::silu(lin_rbf(rbf));
  const torch::Tensor ends =
      torch::cat({atoms.index_select(0, inputs.target), atoms.index_select(0, inputs.source), distance}, 1);
  return torch::silu(lin(ends));
}

DimenetInteractionImpl::DimenetInteractionImpl()
    : lin_rbf(register_module("lin_rbf", orthogonal_linear(kRadial, kHidden, false))),
      lin_sbf(register_module("lin_sbf", orthogonal_linear(kSpherical * kRadial, kBilinear, false))),
      lin_kj(register_module("lin_kj", orthogonal_linear(kHidden, kHidden))),
      lin_ji(register_module("lin_ji", orthogonal_linear(kHidden, kHidden))),
      W(register_parameter("W", torch::randn({kHidden, kBilinear, kHidden}) * (2.0 / kHidden))),
      layers_before_skip(register_module("layers_before_skip", residuals(kBeforeSkip))),
      lin(register_module("lin", orthogonal_linear(kHidden, kHidden))),
      layers_after_skip(register_module("layers_after_skip", residuals(kAfterSkip))) {}

torch::Tensor DimenetInteractionImpl::forward(const torch::Tensor& x, const torch::Tensor& radial,
                                              const torch::Tensor& angles, const Inputs& inputs) {
  const torch::Tensor x_ji = torch::silu(lin_ji(x));
  const torch::Tensor x_kj = torch::silu(lin_kj(x)) * radial;
  // The reference contracts sbf [T, 8], x_kj [T, 128] and W for each triplet, then sums over the triplets of an edge.
  // The sum over k is taken first here, as one product of matrices an atom: T / E times fewer operations, same result.
  const std::int64_t rows = inputs.atoms() * inputs.slots();
  const torch::Tensor incoming = place(x_kj, inputs.in_slot, rows).view({inputs.atoms(), inputs.slots(), kHidden});
  const torch::Tensor gathered = torch::bmm(angles, incoming).view({rows, kBilinear * kHidden});
  const torch::Tensor message =
      torch::linear(gathered.index_select(0, inputs.out_slot), W.view({kHidden, kBilinear * kHidden}));
  const torch::Tensor h = torch::silu(lin(run_through(layers_before_skip, x_ji + message))) + x;
  return run_through(layers_after_skip, h);
}

DimenetImpl::DimenetImpl()
    : rbf(register_module("rbf", RadialBasis(kRadial, kCutoff))),
      sbf(register_module("sbf", SphericalBasis(kSpherical, kRadial, kCutoff))),
      emb(register_module("emb", DimenetEmbedding())),
      output_blocks(register_module("output_blocks", torch::nn::ModuleList())),
      interaction_blocks(register_module("interaction_blocks", torch::nn::ModuleList())) {
  for (std::int64_t i = 0; i < kBlocks + 1; ++i) output_blocks->push_back(std::make_shared<DimenetOutputImpl>());
  for (std::int64_t i = 0; i < kBlocks; ++i) interaction_blocks->push_back(std::make_shared<DimenetInteractionImpl>());
}

torch::Tensor DimenetImpl::triplet_basis(const torch::Tensor& vectors, const torch::Tensor& distance,
                                         const Inputs& inputs) {
  const torch::Tensor ji = vectors.index_select(0, inputs.triplet_ji);       // from i to j
  const torch::Tensor ki = vectors.index_select(0, inputs.triplet_kj) + ji;  // from i to k
  const torch::Tensor lengths = (torch::sum(ji * ji, 1) * torch::sum(ki * ki, 1)).sqrt();
  const torch::Tensor cosine = torch::sum(ji * ki, 1) / lengths;
  return sbf->radial(distance).index_select(0, inputs.triplet_kj) * sbf->angular(cosine).unsqueeze(2);
}

torch::Tensor DimenetImpl::angular_weights(const torch::Tensor& vectors, const torch::Tensor& distance,
                                           const Inputs& inputs) {
  std::vector<torch::Tensor> weights;
  for (const auto& block : *interaction_blocks) {
    weights.push_back(block->as<DimenetInteractionImpl>()->lin_sbf->weight);
  }
  const std::int64_t atoms = inputs.atoms();
  const std::int64_t slots = inputs.slots();
  const torch::Tensor values =
      torch::linear(triplet_basis(vectors, distance, inputs).flatten(1), torch::cat(weights, 0));  // [T, 6 * 8]
  return place(values, inputs.triplet_slot, atoms * slots * slots)
      .view({atoms, slots, slots, kBlocks, kBilinear})
      .permute({3, 0, 1, 4, 2})
      .reshape({kBlocks, atoms, slots * kBilinear, slots});
}

torch::Tensor DimenetImpl::radial_weights(const torch::Tensor& basis) {
  std::vector<torch::Tensor> weights;
  for (const auto& block : *interaction_blocks) {
    weights.push_back(block->as<DimenetInteractionImpl>()->lin_rbf->weight.t());
  }
  for (const auto& block : *output_blocks) weights.push_back(block->as<DimenetOutputImpl>()->lin_rbf->weight.t());
  const auto blocks = static_cast<std::int64_t>(weights.size());
  return torch::bmm(basis.expand({blocks, -1, -1}), torch::stack(weights));
}

torch::Tensor DimenetImpl::forward(const Inputs& inputs) {
  const torch::Tensor vectors = edge_vectors(inputs.positions, inputs.source, inputs.target);
  const torch::Tensor distance = torch::sum(vectors * vectors, 1).sqrt();
  const torch::Tensor basis = rbf(distance);
  const torch::Tensor radial = radial_weights(basis);
  const torch::Tensor angles = angular_weights(vectors, distance, inputs);
  torch::Tensor x = emb(basis, inputs);
  torch::Tensor energies = torch::zeros({inputs.atoms(), 1}, inputs.positions.options());
  for (std::int64_t i = 0; i <= kBlocks; ++i) {
    const auto block = static_cast<std::size_t>(i);
    if (i > 0) {
      auto* interaction = interaction_blocks[block - 1]->as<DimenetInteractionImpl>();
      x = interaction->forward(x, radial[i - 1], angles[i - 1], inputs);
    }
    energies = energies + output_blocks[block]->as<DimenetOutputImpl>()->forward(x, radial[kBlocks + i], inputs);
  }
  return sum_by(energies, inputs.molecule, inputs.molecules()).squeeze(1);
}

}  // namespace ergometer::workload::molecules
