#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "helpers.hpp"
#include "molecules/inputs.hpp"
#include "molecules/networks/basis.hpp"
#include "molecules/networks/dimenet.hpp"
#include "molecules/networks/pna.hpp"
#include "molecules/networks/schnet.hpp"

namespace ergometer::workload::molecules {
namespace {

using torch::Tensor;

TEST(MoleculeNetworks, HaveTheirNumbersOfParameters) {
  const std::map<std::string_view, std::int64_t> expected = {
      {"schnet", 455'809}, {"dimenet", 2'100'070}, {"pna", 682'501}};
  for (const Workload* workload : all_workloads()) {
    std::int64_t count = 0;
    for (const Tensor& parameter : workload->make_task({})->network().parameters()) count += parameter.numel();
    EXPECT_EQ(count, expected.at(workload->name)) << workload->name;
    EXPECT_EQ(count, workload->parameters) << workload->name;
  }
}

TEST(MoleculeNetworks, AreNamedAsTheReference) {
  const std::map<std::string_view, std::vector<std::pair<std::string, std::vector<std::int64_t>>>> expected = {
      {"schnet",
       {{"embedding.weight", {100, 128}},
        {"interactions.5.mlp.0.weight", {128, 50}},
        {"interactions.0.mlp.2.bias", {128}},
        {"interactions.5.conv.lin1.weight", {128, 128}},
        {"interactions.0.conv.lin2.bias", {128}},
        {"interactions.0.lin.weight", {128, 128}},
        {"lin1.weight", {64, 128}},
        {"lin2.bias", {1}},
        {"distance_expansion.offset", {50}}}},
      {"dimenet",
       {{"rbf.freq", {6}},
        {"emb.emb.weight", {95, 128}},
        {"emb.lin_rbf.bias", {128}},
        {"emb.lin.weight", {128, 384}},
        {"output_blocks.6.lin_rbf.weight", {128, 6}},
        {"output_blocks.0.lins.2.bias", {128}},
        {"output_blocks.0.lin.weight", {1, 128}},
        {"interaction_blocks.5.W", {128, 8, 128}},
        {"interaction_blocks.5.lin_sbf.weight", {8, 42}},
        {"interaction_blocks.0.layers_before_skip.0.lin1.weight", {128, 128}},
        {"interaction_blocks.0.layers_after_skip.1.lin2.bias", {128}}}},
      {"pna",
       {{"node_emb.weight", {100, 75}},
        {"convs.3.edge_encoder.weight", {75, 50}},
        {"convs.0.pre_nns.4.0.weight", {75, 225}},
        {"convs.3.post_nns.4.0.weight", {15, 975}},
        {"convs.3.lin.bias", {75}},
        {"convs.3.aggr_module.avg_deg_lin", {1}},
        {"convs.3.aggr_module.avg_deg_log", {1}},
        {"mlp.4.weight", {1, 25}}}}};
  for (const Workload* workload : all_workloads()) {
    const auto task = workload->make_task({});
    const auto parameters = task->network().named_parameters();
    const auto buffers = task->network().named_buffers();
    for (const auto& [name, sizes] : expected.at(workload->name)) {
      const Tensor* tensor = parameters.find(name) ? parameters.find(name) : buffers.find(name);
      ASSERT_NE(tensor, nullptr) << workload->name << ' ' << name;
      EXPECT_EQ(tensor->sizes(), torch::IntArrayRef(sizes)) << workload->name << ' ' << name;
    }
  }
}

TEST(DimenetBasis, ZerosAreThoseOfTheSphericalBesselFunctions) {
  const auto zeros = spherical_bessel_zeros(7, 6);
  EXPECT_NEAR(zeros[0][5], 6 * M_PI, 1e-12);
  EXPECT_NEAR(zeros[1][0], 4.493409457909064, 1e-12);
  EXPECT_NEAR(zeros[2][0], 5.763459196894550, 1e-12);
  for (unsigned order = 0; order < 7; ++order) {
    for (std::size_t n = 0; n < 6; ++n) {
      EXPECT_NEAR(std::sph_bessel(order, zeros[order][n]), 0, 1e-12) << order << ' ' << n;
      if (n > 0) {
        EXPECT_GT(zeros[order][n], zeros[order][n - 1] + 3) << order << ' ' << n;
        EXPECT_LT(zeros[order][n], zeros[order][n - 1] + 4.5) << order << ' ' << n;
      }
    }
  }
}

TEST(DimenetBasis, AgreesWithTheStandardLibrarysFunctions) {
  SphericalBasis basis(7, 6, 5.0);
  const auto zeros = spherical_bessel_zeros(7, 6);
  const std::vector<float> distances = {0.7F, 1.09F, 1.54F, 2.6F, 4.9F, 5.1F};
  const Tensor radial = basis->radial(torch::tensor(distances));
  for (std::size_t i = 0; i < distances.size(); ++i) {
    const double x = static_cast<double>(distances[i]) / 5;
    const double u = x < 1 ? 1 / x - 28 * std::pow(x, 5) + 48 * std::pow(x, 6) - 21 * std::pow(x, 7) : 0;
    for (unsigned l = 0; l < 7; ++l) {
      for (std::size_t n = 0; n < 6; ++n) {
        const double z = zeros[l][n];
        const double norm = std::sqrt(2 / std::pow(std::sph_bessel(l + 1, z), 2));
        const auto value = radial[static_cast<std::int64_t>(i)][l][static_cast<std::int64_t>(n)].item<double>();
        EXPECT_NEAR(value, u * norm * std::sph_bessel(l, z * x), 2e-6 * norm * u + 1e-9) << distances[i] << l << n;
      }
    }
  }
  for (const double theta : {0.0, 0.4, 1.9, 3.1}) {
    const Tensor angular = basis->angular(torch::tensor({static_cast<float>(std::cos(theta))}));
    for (unsigned l = 0; l < 7; ++l) {
      EXPECT_NEAR(angular[0][l].item<double>(), std::sph_legendre(l, 0, theta), 3e-6) << theta << ' ' << l;
    }
  }
}

// The formula of the reference, triplet by triplet, with angles by atan2.
TEST(Dimenet, InteractionIsTheSumOverTriplets) {
  torch::manual_seed(5);
  const auto molecules = some_molecules(3);
  const Batch batch = collate(labelled(molecules), {5, true}, nullptr, 0);
  const Inputs in = Inputs::of(batch);
  Dimenet network;
  auto& block = *network->interaction_blocks[2]->as<DimenetInteractionImpl>();
  const Tensor x = torch::randn({in.source.size(0), 128});
  const Tensor vectors = in.positions.index_select(0, in.source) - in.positions.index_select(0, in.target);
  const Tensor distance = vectors.norm(2, {1});
  const Tensor rbf = network->rbf(distance);
  const Tensor output = block.forward(x, block.lin_rbf(rbf), network->angular_weights(vectors, distance, in)[2], in);

  const Tensor i = in.target.index_select(0, in.triplet_ji);
  const Tensor j = in.source.index_select(0, in.triplet_ji);
  const Tensor k = in.source.index_select(0, in.triplet_kj);
  ASSERT_TRUE(torch::equal(j, in.target.index_select(0, in.triplet_kj)));
  const auto at = [&](const Tensor& atom) { return in.positions.index_select(0, atom); };
  const Tensor dot = ((at(j) - at(i)) * (at(k) - at(i))).sum(1);
  const Tensor angle = torch::atan2(torch::cross(at(j) - at(i), at(k) - at(i), 1).norm(2, {1}), dot);
  const Tensor sbf =
      (network->sbf->radial(distance).index_select(0, in.triplet_kj) * network->sbf->angular(angle.cos()).unsqueeze(2))
          .flatten(1);
  const Tensor x_kj = torch::silu(block.lin_kj(x)) * block.lin_rbf(rbf);
  const Tensor terms =
      torch::einsum("wj,wl,ijl->wi", {block.lin_sbf(sbf), x_kj.index_select(0, in.triplet_kj), block.W});
  Tensor h = torch::silu(block.lin_ji(x)) + torch::zeros_like(x).index_add(0, in.triplet_ji, terms);
  const auto weights = block.named_parameters();
  const auto linear = [&](const std::string& name, const Tensor& value) {
    return torch::linear(value, weights[name + ".weight"], weights[name + ".bias"]);
  };
  const auto residual = [&](const std::string& name, const Tensor& value) {
    return value + torch::silu(linear(name + ".lin2", torch::silu(linear(name + ".lin1", value))));
  };
  h = torch::silu(linear("lin", residual("layers_before_skip.0", h))) + x;
  EXPECT_LT(worst(output, residual("layers_after_skip.1", residual("layers_after_skip.0", h))), 1e-5);
}

TEST(Dimenet, TripletsAreAllPathsWithoutReturn) {
  const auto molecules = some_molecules(2);
  const Batch batch = collate(labelled(molecules), {5, true}, nullptr, 0);
  const Inputs in = Inputs::of(batch);
  std::vector<std::vector<std::int64_t>> expected;
  const auto source = in.source.accessor<std::int64_t, 1>();
  const auto target = in.target.accessor<std::int64_t, 1>();
  for (std::int64_t ji = 0; ji < source.size(0); ++ji) {
    for (std::int64_t kj = 0; kj < source.size(0); ++kj) {
      if (target[kj] == source[ji] && source[kj] != target[ji]) expected.push_back({kj, ji});
    }
  }
  ASSERT_EQ(in.triplet_kj.size(0), static_cast<std::int64_t>(expected.size()));
  for (std::size_t t = 0; t < expected.size(); ++t) {
    EXPECT_EQ(in.triplet_kj[static_cast<std::int64_t>(t)].item<std::int64_t>(), expected[t][0]);
    EXPECT_EQ(in.triplet_ji[static_cast<std::int64_t>(t)].item<std::int64_t>(), expected[t][1]);
  }
  MoleculeSizes sizes = measure(molecules[0], 5);
  sizes += measure(molecules[1], 5);
  EXPECT_EQ(sizes.triplets, in.triplet_kj.size(0));
  EXPECT_EQ(sizes.edges, in.source.size(0));
}

// PNAConv as its documentation describes it, tower by tower and atom by atom. One molecule is a single atom: it has no
// neighbours at all.
TEST(Pna, ConvolutionAgreesWithItsDefinition) {
  torch::manual_seed(6);
  auto molecules = some_molecules(2);
  Molecule alone;
  alone.elements = {6};
  alone.positions = {0, 0, 0};
  molecules.insert(molecules.begin() + 1, alone);
  const Inputs in = Inputs::of(collate(labelled(molecules), {5, false}, nullptr, 0));
  PnaConv conv;
  const auto weights = conv->named_parameters();
  const Tensor x = torch::randn({in.atoms(), 75});
  const Tensor edges = torch::randn({in.source.size(0), 50});
  const Tensor output = conv->forward(x, edges, in);

  const Tensor encoded = conv->edge_encoder(edges);
  const double average = conv->avg_deg_log.item<double>();
  std::vector<Tensor> rows;
  for (std::int64_t atom = 0; atom < in.atoms(); ++atom) {
    const Tensor into = (in.target == atom).nonzero().squeeze(1);
    const auto degree = static_cast<double>(into.size(0));
    const Tensor from = in.source.index_select(0, into);
    const Tensor read =
        torch::cat({x[atom].expand({into.size(0), 75}), x.index_select(0, from), encoded.index_select(0, into)}, 1);
    std::vector<Tensor> towers;
    for (int t = 0; t < 5; ++t) {
      const std::string tower = std::to_string(t) + ".0.";
      const Tensor h =
          torch::linear(read, weights["pre_nns." + tower + "weight"], weights["pre_nns." + tower + "bias"]);
      Tensor all = torch::zeros({300});
      if (degree > 0) {
        const Tensor mean = h.mean(0);
        const Tensor variance = torch::relu((h * h).mean(0) - mean * mean);
        const Tensor deviation = torch::where(variance > 1e-5, variance.sqrt(), torch::zeros_like(variance));
        all = torch::cat({mean, std::get<0>(h.min(0)), std::get<0>(h.max(0)), deviation});
      }
      const double more = std::log(degree + 1) / average;
      const double less = average / std::log(std::max(1.0, degree) + 1);
      towers.push_back(torch::linear(torch::cat({x[atom], all, all * more, all * less}),
                                     weights["post_nns." + tower + "weight"], weights["post_nns." + tower + "bias"]));
    }
    rows.push_back(conv->lin(torch::cat(towers)));
  }
  EXPECT_LT(worst(output, torch::stack(rows)), 1e-5);
}

// Two equal extremes share the gradient, as scatter_reduce's do.
TEST(Pna, EqualExtremesShareTheGradient) {
  Molecule water;
  water.elements = {8, 1, 1};
  water.positions = {0, 0, 0, 1, 0, 0, 0, 1, 0};
  const std::vector<Molecule> molecules = {water};
  const Inputs in = Inputs::of(collate(labelled(molecules), {5, false}, nullptr, 0));
  Tensor messages = torch::zeros({6, 375});
  messages[0].fill_(2);  // both edges into the first atom
  messages[1].fill_(2);
  messages.requires_grad_(true);
  const Tensor all = PnaConvImpl::aggregate(torch::zeros({3, 375}), messages, in);
  all[0].narrow(1, 75, 75).sum().backward();  // minima
  EXPECT_TRUE(torch::equal(messages.grad()[0], torch::full({375}, 0.5F)));
  EXPECT_TRUE(torch::equal(messages.grad()[1], torch::full({375}, 0.5F)));
}

// The formula of the reference, edge by edge.
TEST(Schnet, AgreesWithItsDefinition) {
  torch::manual_seed(7);
  const auto molecules = some_molecules(2);
  const Inputs in = Inputs::of(collate(labelled(molecules), {10, false}, nullptr, 0));
  Schnet network;
  const auto weights = network->named_parameters();
  const auto linear = [&](const std::string& name, const Tensor& value) {
    return torch::linear(value, weights[name + ".weight"], weights[name + ".bias"]);
  };
  const auto act = [](const Tensor& value) { return torch::log(0.5 * torch::exp(value) + 0.5); };
  Tensor h = weights["embedding.weight"].index_select(0, in.elements);
  for (int i = 0; i < 6; ++i) {
    const std::string block = "interactions." + std::to_string(i) + '.';
    const Tensor y = torch::matmul(h, weights[block + "conv.lin1.weight"].t());
    std::vector<Tensor> sums(static_cast<std::size_t>(in.atoms()), torch::zeros({128}));
    for (std::int64_t e = 0; e < in.source.size(0); ++e) {
      const auto from = in.source[e].item<std::int64_t>();
      const auto to = in.target[e].item<std::int64_t>();
      const double d = (in.positions[from] - in.positions[to]).norm().item<double>();
      const Tensor gauss = torch::exp(-0.5 * torch::square((d - torch::arange(50) * (10.0 / 49)) / (10.0 / 49)));
      const Tensor filter = linear(block + "mlp.2", act(linear(block + "mlp.0", gauss.to(torch::kFloat32)))) *
                            (0.5 * (std::cos(d * M_PI / 10) + 1));
      sums[static_cast<std::size_t>(to)] = sums[static_cast<std::size_t>(to)] + y[from] * filter;
    }
    h = h + linear(block + "lin", act(linear(block + "conv.lin2", torch::stack(sums))));
  }
  const Tensor energies = torch::zeros({3, 1}).index_add(0, in.molecule, linear("lin2", act(linear("lin1", h))));
  EXPECT_LT(worst(network->forward(in), energies.squeeze(1)), 1e-5);
}

}  // namespace
}  // namespace ergometer::workload::molecules
