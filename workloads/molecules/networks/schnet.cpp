#include "molecules/networks/schnet.hpp"

#include <cmath>
#include <vector>

namespace ergometer::workload::molecules {
namespace {

constexpr std::int64_t kSchnetHidden = 128;
constexpr std::int64_t kFilters = 128;
constexpr std::int64_t kSchnetBlocks = 6;
constexpr std::int64_t kGaussians = 50;
constexpr std::int64_t kSchnetElements = 100;

torch::Tensor shifted_softplus(const torch::Tensor& x) { return torch::softplus(x) - std::log(2.0); }

torch::nn::Linear xavier_linear(std::int64_t in, std::int64_t out, bool bias = true) {
  torch::nn::Linear linear(torch::nn::LinearOptions(in, out).bias(bias));
  torch::nn::init::xavier_uniform_(linear->weight);
  if (bias) torch::nn::init::zeros_(linear->bias);
  return linear;
}

}  // namespace

// The reference's CFConv: the continuous-filter convolution's layers before and after the filter.
struct SchnetConvImpl : torch::nn::Module {
  SchnetConvImpl()
      : lin1(register_module("lin1", xavier_linear(kSchnetHidden, kFilters, false))),
        lin2(register_module("lin2", xavier_linear(kFilters, kSchnetHidden))) {}
  torch::nn::Linear lin1, lin2;
};
TORCH_MODULE(SchnetConv);

struct SchnetBlockImpl : torch::nn::Module {
  SchnetBlockImpl()
      : mlp(register_module(
            "mlp", torch::nn::Sequential(xavier_linear(kGaussians, kFilters), torch::nn::Functional(shifted_softplus),
                                         xavier_linear(kFilters, kFilters)))),
        conv(register_module("conv", SchnetConv())),
        lin(register_module("lin", xavier_linear(kSchnetHidden, kSchnetHidden))) {}

  // What is added to the atoms' features x [N, 128]. filter [E, 128]: the block's, of each edge's distance.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& filter, const Inputs& inputs) {
    const torch::Tensor messages = conv->lin1(x).index_select(0, inputs.source) * filter;
    return lin(shifted_softplus(conv->lin2(sum_by(messages, inputs.target, inputs.atoms()))));
  }

  torch::nn::Sequential mlp;
  SchnetConv conv;
  torch::nn::Linear lin;
};

SchnetImpl::SchnetImpl()
    : embedding(register_module(
          "embedding",
          torch::nn::Embedding(torch::nn::EmbeddingOptions(kSchnetElements, kSchnetHidden).padding_idx(0)))),
      distance_expansion(register_module("distance_expansion", GaussianBasis(kCutoff, kGaussians))),
      interactions(register_module("interactions", torch::nn::ModuleList())),
      lin1(register_module("lin1", xavier_linear(kSchnetHidden, kSchnetHidden / 2))),
      lin2(register_module("lin2", xavier_linear(kSchnetHidden / 2, 1))) {
  for (std::int64_t i = 0; i < kSchnetBlocks; ++i) interactions->push_back(std::make_shared<SchnetBlockImpl>());
}

// All blocks' filters depend on the distances alone: their two layers are run for all blocks at once.
torch::Tensor SchnetImpl::filters(const torch::Tensor& distance) {
  std::vector<torch::Tensor> weights1, biases1, weights2, biases2;
  for (const auto& block : *interactions) {
    const auto layers = block->as<SchnetBlockImpl>()->mlp->named_parameters();
    weights1.push_back(layers["0.weight"]);
    biases1.push_back(layers["0.bias"]);
    weights2.push_back(layers["2.weight"].t());
    biases2.push_back(layers["2.bias"].unsqueeze(0));
  }
  const torch::Tensor hidden = shifted_softplus(
      torch::linear(distance_expansion(distance), torch::cat(weights1, 0), torch::cat(biases1, 0)));  // [E, 6 * 128]
  const torch::Tensor cutoff = (0.5 * (torch::cos(distance * (M_PI / kCutoff)) + 1.0)).unsqueeze(1);
  return torch::baddbmm(torch::stack(biases2), hidden.view({-1, kSchnetBlocks, kFilters}).transpose(0, 1),
                        torch::stack(weights2)) *
         cutoff;
}

torch::Tensor SchnetImpl::forward(const Inputs& inputs) {
  const torch::Tensor filter = filters(edge_vectors(inputs.positions, inputs.source, inputs.target).norm(2, {1}));
  torch::Tensor x = embedding(inputs.elements);
  for (std::size_t i = 0; i < static_cast<std::size_t>(kSchnetBlocks); ++i) {
    x = x + interactions[i]->as<SchnetBlockImpl>()->forward(x, filter[static_cast<std::int64_t>(i)], inputs);
  }
  const torch::Tensor energies = lin2(shifted_softplus(lin1(x)));
  return sum_by(energies.to(torch::kFloat32), inputs.molecule, inputs.molecules()).squeeze(1);
}

}  // namespace ergometer::workload::molecules
