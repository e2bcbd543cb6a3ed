#include "load_lstm/layers/fused_lstm.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "load_lstm/layers/lstm_kernel.hpp"
#include "load_lstm/load_lstm.hpp"
#include "load_lstm/network.hpp"

namespace ergometer::workload {
namespace {

using torch::Tensor;

torch::nn::LSTM make_lstm(std::int64_t input, std::int64_t hidden) {
  torch::manual_seed(7);
  return torch::nn::LSTM(torch::nn::LSTMOptions(input, hidden).batch_first(true));
}

Tensor fused(const torch::nn::LSTM& lstm, const Tensor& input) {
  const auto p = lstm->parameters();
  return fused_lstm(input, p[0], p[1], p[2], p[3]);
}

// Gradients of sum(output * weight) by every parameter.
std::vector<Tensor> gradients(const torch::nn::LSTM& lstm, const Tensor& output, const Tensor& weight) {
  return torch::autograd::grad({(output * weight).sum()}, lstm->parameters());
}

double worst(const Tensor& a, const Tensor& b) {
  return ((a - b).abs().max() / (b.abs().max() + 1e-12)).item<double>();
}

// Sequences: one, less than a group of lanes, exactly one, several and a part. Steps: one, a tile, tiles and a part.
class EveryKernel : public testing::TestWithParam<const LstmKernel*> {
 protected:
  void SetUp() override { use_lstm_kernel(*GetParam()); }
  void TearDown() override { use_lstm_kernel(*usable_lstm_kernels().front()); }
};

TEST_P(EveryKernel, AgreesWithTorchInValuesAndGradients) {
  for (const auto& [batch, steps, input, hidden] :
       std::vector<std::array<std::int64_t, 4>>{{1, 1, 1, 16}, {5, 8, 3, 32}, {16, 9, 2, 48}, {37, 30, 1, 48}}) {
    SCOPED_TRACE(testing::Message() << batch << " x " << steps << " x " << input << " to " << hidden);
    auto lstm = make_lstm(input, hidden);
    const Tensor x = torch::randn({batch, steps, input});
    const Tensor weight = torch::randn({batch, steps, hidden});
    const Tensor expected = std::get<0>(lstm->forward(x));
    const Tensor output = fused(lstm, x);
    EXPECT_LT(worst(output, expected), 1e-5);
    {
      const torch::NoGradGuard no_gradient;
      EXPECT_TRUE(torch::equal(fused(lstm, x), output));
    }
    const auto expected_gradients = gradients(lstm, expected, weight);
    const auto fused_gradients = gradients(lstm, output, weight);
    for (std::size_t i = 0; i < expected_gradients.size(); ++i) {
      if (expected_gradients[i].abs().max().item<double>() == 0) {  // one step has no recurrent gradient
        EXPECT_EQ(fused_gradients[i].abs().max().item<double>(), 0) << i;
      } else {
        EXPECT_LT(worst(fused_gradients[i], expected_gradients[i]), 1e-5) << i;
      }
    }
  }
}

TEST_P(EveryKernel, SaturatedGatesStayFinite) {
  auto lstm = make_lstm(1, 16);
  const Tensor x = torch::full({2, 4, 1}, 1e6F);
  const Tensor output = fused(lstm, x);
  EXPECT_LT((output - std::get<0>(lstm->forward(x))).abs().max().item<double>(), 1e-5);
  for (const Tensor& gradient : gradients(lstm, output, torch::ones_like(output))) {
    EXPECT_TRUE(torch::isfinite(gradient).all().item<bool>());
  }
}

INSTANTIATE_TEST_SUITE_P(FusedLstm, EveryKernel, testing::ValuesIn(usable_lstm_kernels()),
                         [](const auto& instance) { return std::string(instance.param->name); });

TEST(FusedLstm, GradientsAgreeWithFiniteDifferences) {
  auto lstm = make_lstm(2, 16);
  const Tensor x = torch::randn({3, 5, 2});
  const Tensor weight = torch::randn({3, 5, 16});
  const auto exact = gradients(lstm, fused(lstm, x), weight);
  // The differences are taken in double precision, on LibTorch's own layer.
  auto wide = make_lstm(2, 16);
  wide->to(torch::kFloat64);
  const torch::NoGradGuard no_gradient;
  const auto loss = [&] {
    return (std::get<0>(wide->forward(x.to(torch::kFloat64))) * weight.to(torch::kFloat64)).sum().item<double>();
  };
  const auto parameters = wide->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    double* value = parameters[i].data_ptr<double>();
    const float* gradient = exact[i].data_ptr<float>();
    for (std::int64_t k = 0; k < parameters[i].numel(); k += 13) {
      const double kept = value[k];
      constexpr double kStep = 1e-5;
      value[k] = kept + kStep;
      const double above = loss();
      value[k] = kept - kStep;
      const double below = loss();
      value[k] = kept;
      EXPECT_NEAR(static_cast<double>(gradient[k]), (above - below) / (2 * kStep), 2e-5) << i << "[" << k << "]";
    }
  }
}

TEST(FusedLstm, SameBitsForAnyNumberOfThreads) {
  auto lstm = make_lstm(1, 48);
  const Tensor x = torch::randn({64, 20, 1});
  const int before = at::get_num_threads();
  std::vector<std::vector<Tensor>> results;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    const Tensor output = fused(lstm, x);
    auto result = gradients(lstm, output, torch::ones_like(output));
    result.push_back(output);
    results.push_back(result);
  }
  at::set_num_threads(before);
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_TRUE(torch::equal(results[0][i], results[1][i])) << i;
    EXPECT_TRUE(torch::equal(results[0][i], results[2][i])) << i;
  }
}

TEST(FusedLstm, RefusesWhatItCannotDo) {
  auto lstm = make_lstm(1, 10);
  EXPECT_FALSE(can_fuse_lstm(torch::zeros({1, 2, 1}), lstm->parameters()[1]));
  lstm = make_lstm(1, 16);
  EXPECT_TRUE(can_fuse_lstm(torch::zeros({1, 2, 1}), lstm->parameters()[1]));
  EXPECT_FALSE(can_fuse_lstm(torch::zeros({1, 2, 1}, torch::kFloat64), lstm->parameters()[1]));
  EXPECT_FALSE(can_fuse_lstm(torch::zeros({1, 2, 1}).requires_grad_(), lstm->parameters()[1]));
}

TEST(LoadLstmNetwork, HasThePublishedParametersUnderPyTorchsNames) {
  load_lstm::Network network;
  std::int64_t count = 0;
  std::vector<std::string> names;
  for (const auto& parameter : network->named_parameters()) {
    names.push_back(parameter.key());
    count += parameter.value().numel();
  }
  EXPECT_EQ(count, 4 * (48 * 1 + 48 * 48 + 48 + 48) + 49);
  EXPECT_EQ(count, load_lstm::kWorkload.parameters);
  EXPECT_EQ(names, (std::vector<std::string>{"lstm.weight_ih_l0", "lstm.weight_hh_l0", "lstm.bias_ih_l0",
                                             "lstm.bias_hh_l0", "linear.weight", "linear.bias"}));
}

}  // namespace
}  // namespace ergometer::workload
