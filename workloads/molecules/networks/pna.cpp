#include "molecules/networks/pna.hpp"

#include <limits>
#include <vector>

namespace ergometer::workload::molecules {
namespace {

constexpr std::int64_t kFeatures = 75;
constexpr std::int64_t kTowers = 5;
constexpr std::int64_t kTowerOutput = kFeatures / kTowers;
constexpr std::int64_t kAggregators = 4;
constexpr std::int64_t kScalers = 3;
constexpr std::int64_t kEdgeFeatures = 50;
constexpr std::int64_t kConvolutions = 4;
constexpr std::int64_t kPnaElements = 100;
constexpr double kLeastVariance = 1e-5;

// Of 24,245 atoms in 1,359 molecules of QM9: the mean number of atoms nearer than 5 angstrom, and the mean of the
// natural logarithm of that number and 1.
constexpr double kAverageDegree = 15.468344;
constexpr double kAverageLogDegree = 2.779554;

// Weights (or biases) of the towers' one linear layer, one after the other.
torch::Tensor joined(const torch::nn::ModuleList& towers, const char* name) {
  std::vector<torch::Tensor> tensors;
  for (const auto& tower : *towers) {
    tensors.push_back(tower->as<torch::nn::Sequential>()->ptr(0)->named_parameters(false)[name]);
  }
  return torch::cat(tensors, 0);
}

// [N, 3]: the reference's scalers identity, amplification and attenuation of an atom with that many neighbours.
torch::Tensor scalers(const torch::Tensor& degree, const torch::Tensor& average_log) {
  const torch::Tensor amplification = torch::log(degree + 1) / average_log;
  const torch::Tensor attenuation = average_log / torch::log(degree.clamp_min(1) + 1);
  return torch::stack({torch::ones_like(degree), amplification, attenuation}, 1);
}

torch::Tensor degrees(const Inputs& inputs) { return inputs.filled.sum(1); }

}  // namespace

// The reference's DegreeScalerAggregation has its averages as buffers; the linear one serves scalers that are not used.
struct PnaScalersImpl : torch::nn::Module {
  PnaScalersImpl()
      : avg_deg_lin(register_buffer("avg_deg_lin", torch::full({1}, kAverageDegree))),
        avg_deg_log(register_buffer("avg_deg_log", torch::full({1}, kAverageLogDegree))) {}
  torch::Tensor avg_deg_lin, avg_deg_log;
};
TORCH_MODULE(PnaScalers);

PnaConvImpl::PnaConvImpl()
    : edge_encoder(register_module("edge_encoder", torch::nn::Linear(kEdgeFeatures, kFeatures))),
      pre_nns(register_module("pre_nns", torch::nn::ModuleList())),
      post_nns(register_module("post_nns", torch::nn::ModuleList())),
      lin(register_module("lin", torch::nn::Linear(kFeatures, kFeatures))),
      avg_deg_log(register_module("aggr_module", PnaScalers())->avg_deg_log) {
  for (std::int64_t i = 0; i < kTowers; ++i) {
    pre_nns->push_back(torch::nn::Sequential(torch::nn::Linear(3 * kFeatures, kFeatures)));
    post_nns->push_back(
        torch::nn::Sequential(torch::nn::Linear((kAggregators * kScalers + 1) * kFeatures, kTowerOutput)));
  }
}

torch::Tensor PnaConvImpl::aggregate(const torch::Tensor& own, const torch::Tensor& others, const Inputs& inputs) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::int64_t atoms = inputs.atoms();
  const torch::Tensor degree = degrees(inputs).unsqueeze(1);
  const torch::Tensor count = degree.clamp_min(1);
  const torch::Tensor any = degree > 0;
  const torch::Tensor empty = inputs.filled.logical_not().unsqueeze(2);
  const torch::Tensor slots =
      place(others, inputs.in_slot, atoms * inputs.slots()).view({atoms, inputs.slots(), others.size(1)});
  // What all messages have in common moves the mean and the extremes, and leaves the deviation as it is.
  const auto shifted = [&](const torch::Tensor& value) { return torch::where(any, value + own, 0.0F * own); };
  const torch::Tensor mean = slots.sum(1) / count;
  const torch::Tensor variance = (slots * slots).sum(1) / count - mean * mean;
  // As in the reference since PyTorch Geometric 2.1: the root's gradient is unbounded near 0, so a small variance is
  // none.
  const torch::Tensor deviation = variance.clamp_min(kLeastVariance).sqrt().masked_fill(variance <= kLeastVariance, 0);
  // Equal extremes share the gradient equally, as with scatter_reduce in the reference.
  const torch::Tensor least = slots.masked_fill(empty, kInfinity).amin(1);
  const torch::Tensor most = slots.masked_fill(empty, -kInfinity).amax(1);
  const torch::Tensor all = torch::stack({shifted(mean), shifted(least), shifted(most), deviation}, 1);  // [N, 4, 375]
  return all.view({atoms, kAggregators, kTowers, kFeatures}).transpose(1, 2).flatten(2);
}

torch::Tensor PnaConvImpl::forward(const torch::Tensor& x, const torch::Tensor& edges, const Inputs& inputs) {
  // The towers' first layer reads (x_i, x_j, edge): the product with each part is taken once an atom, or once an edge.
  const torch::Tensor before = joined(pre_nns, "weight");  // [375, 225]
  const auto part = [&](std::int64_t which) { return before.narrow(1, which * kFeatures, kFeatures); };
  const torch::Tensor own = torch::linear(x, part(0), joined(pre_nns, "bias")).to(torch::kFloat32);
  const torch::Tensor others =
      torch::linear(x, part(1)).index_select(0, inputs.source) + torch::linear(edge_encoder(edges), part(2));

  // The towers' last layer reads (x, 3 x 4 aggregates): scalers are applied to its products, not to its input.
  const torch::Tensor aggregates = aggregate(own, others.to(torch::kFloat32), inputs).transpose(0, 1);  // [5, N, 300]
  const torch::Tensor after = joined(post_nns, "weight");                                               // [75, 975]
  const torch::Tensor mixing = after.narrow(1, kFeatures, kScalers * kAggregators * kFeatures)
                                   .reshape({kTowers, kTowerOutput, kScalers, kAggregators * kFeatures})
                                   .permute({0, 3, 2, 1})
                                   .flatten(2);  // [5, 300, 3 * 15]
  const torch::Tensor scale = scalers(degrees(inputs), avg_deg_log).view({1, inputs.atoms(), kScalers, 1});
  const torch::Tensor mixed =
      (torch::bmm(aggregates, mixing).view({kTowers, inputs.atoms(), kScalers, kTowerOutput}) * scale).sum(2);
  return lin(torch::linear(x, after.narrow(1, 0, kFeatures), joined(post_nns, "bias")) +
             mixed.transpose(0, 1).flatten(1));
}

PnaImpl::PnaImpl()
    : node_emb(register_module("node_emb", torch::nn::Embedding(kPnaElements, kFeatures))),
      distance_expansion(register_module("distance_expansion", GaussianBasis(kCutoff, kEdgeFeatures))),
      convs(register_module("convs", torch::nn::ModuleList())),
      mlp(register_module(
          "mlp", torch::nn::Sequential(torch::nn::Linear(kFeatures, 50), torch::nn::ReLU(), torch::nn::Linear(50, 25),
                                       torch::nn::ReLU(), torch::nn::Linear(25, 1)))) {
  for (std::int64_t i = 0; i < kConvolutions; ++i) convs->push_back(PnaConv());
}

torch::Tensor PnaImpl::forward(const Inputs& inputs) {
  const torch::Tensor distance = edge_vectors(inputs.positions, inputs.source, inputs.target).norm(2, {1});
  const torch::Tensor edges = distance_expansion(distance);
  torch::Tensor x = node_emb(inputs.elements);
  for (const auto& conv : *convs) x = torch::relu(conv->as<PnaConv>()->forward(x, edges, inputs));
  return mlp->forward(sum_by(x.to(torch::kFloat32), inputs.molecule, inputs.molecules()))
      .to(torch::kFloat32)
      .squeeze(1);
}

}  // namespace ergometer::workload::molecules
