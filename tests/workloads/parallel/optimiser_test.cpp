#include "steps/optimiser.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace ergometer::workload {
namespace {

std::vector<torch::Tensor> make_parameters() {
  torch::manual_seed(3);
  std::vector<torch::Tensor> parameters = {torch::randn({5, 4}), torch::randn({7}),
                                           torch::randn({2, 3, 4, 4}).contiguous(torch::MemoryFormat::ChannelsLast)};
  for (torch::Tensor& parameter : parameters) parameter.requires_grad_();
  return parameters;
}

// Gradients of step `step`, the same for both.
void set_gradients(const std::vector<torch::Tensor>& parameters, int step) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const torch::Tensor& parameter = parameters[i];
    parameter.mutable_grad() = torch::cos(parameter.detach() * 3 + step + static_cast<double>(i)).mul_(0.5).add_(0.1);
  }
}

void expect_equal(const std::vector<torch::Tensor>& found, const std::vector<torch::Tensor>& expected) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(torch::allclose(found[i], expected[i], 1e-6, 1e-6)) << "parameter " << i;
  }
}

struct Case {
  const char* name;
  OptimiserFacts facts;
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)> reference;
};

OptimiserFacts sgd(double rate, double momentum, bool nesterov, double decay) {
  OptimiserFacts facts;
  facts.rule = Rule::sgd;
  facts.learning_rate = rate;
  facts.momentum = momentum;
  facts.nesterov = nesterov;
  facts.weight_decay = decay;
  return facts;
}

OptimiserFacts adam(double rate, double decay, bool decoupled) {
  OptimiserFacts facts;
  facts.rule = Rule::adam;
  facts.learning_rate = rate;
  facts.weight_decay = decay;
  facts.decoupled_decay = decoupled;
  return facts;
}

std::vector<Case> cases() {
  using torch::optim::AdamOptions;
  using torch::optim::AdamWOptions;
  using torch::optim::SGDOptions;
  const auto with_sgd = [](SGDOptions options) {
    return [options](std::vector<torch::Tensor> parameters) -> std::unique_ptr<torch::optim::Optimizer> {
      return std::make_unique<torch::optim::SGD>(std::move(parameters), options);
    };
  };
  const auto with_adam = [](AdamOptions options) {
    return [options](std::vector<torch::Tensor> parameters) -> std::unique_ptr<torch::optim::Optimizer> {
      return std::make_unique<torch::optim::Adam>(std::move(parameters), options);
    };
  };
  return {
      {"sgd", sgd(0.1, 0, false, 0), with_sgd(SGDOptions(0.1))},
      {"sgd_decay", sgd(0.1, 0, false, 0.02), with_sgd(SGDOptions(0.1).weight_decay(0.02))},
      {"momentum", sgd(0.1, 0.9, false, 1e-2), with_sgd(SGDOptions(0.1).momentum(0.9).weight_decay(1e-2))},
      {"nesterov", sgd(0.1, 0.9, true, 1e-2),
       with_sgd(SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(1e-2))},
      {"adam", adam(1e-2, 0, false), with_adam(AdamOptions(1e-2))},
      {"adam_decay", adam(1e-2, 0.1, false), with_adam(AdamOptions(1e-2).weight_decay(0.1))},
      {"adamw", adam(1e-2, 0.1, true),
       [](std::vector<torch::Tensor> parameters) -> std::unique_ptr<torch::optim::Optimizer> {
         return std::make_unique<torch::optim::AdamW>(std::move(parameters), AdamWOptions(1e-2).weight_decay(0.1));
       }},
  };
}

class UpdateRules : public testing::TestWithParam<Case> {};

TEST_P(UpdateRules, AreTorchOptimsForTenSteps) {
  const std::vector<torch::Tensor> own = make_parameters();
  const std::vector<torch::Tensor> theirs = make_parameters();
  Optimiser optimiser(own, GetParam().facts);
  const auto reference = GetParam().reference(theirs);
  for (int step = 0; step < 10; ++step) {
    set_gradients(own, step);
    set_gradients(theirs, step);
    optimiser.step();
    reference->step();
    expect_equal(own, theirs);
  }
}

TEST_P(UpdateRules, GoOnFromASavedState) {
  const std::vector<torch::Tensor> whole = make_parameters();
  Optimiser one(whole, GetParam().facts);
  const auto run = [](Optimiser& optimiser, const std::vector<torch::Tensor>& parameters, int first, int last) {
    for (int step = first; step < last; ++step) {
      set_gradients(parameters, step);
      optimiser.step();
    }
  };
  run(one, whole, 0, 3);
  NamedTensors saved;
  for (const auto& [name, tensor] : one.state()) saved.emplace_back(name, tensor.clone());
  std::vector<torch::Tensor> resumed;
  for (const torch::Tensor& parameter : whole) resumed.push_back(parameter.detach().clone().requires_grad_());
  run(one, whole, 3, 6);
  Optimiser two(resumed, GetParam().facts);
  ASSERT_TRUE(two.load(saved));
  run(two, resumed, 3, 6);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(torch::equal(whole[i], resumed[i]));
}

INSTANTIATE_TEST_SUITE_P(All, UpdateRules, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case>& one) { return one.param.name; });

TEST(Optimiser, FollowsTheLearningRate) {
  const std::vector<torch::Tensor> parameters = {torch::zeros({2}).requires_grad_()};
  Optimiser optimiser(parameters, sgd(0.1, 0, false, 0));
  parameters[0].mutable_grad() = torch::ones({2});
  optimiser.step();
  optimiser.set_learning_rate(2);
  optimiser.step();
  EXPECT_FLOAT_EQ(parameters[0][0].item<float>(), -2.1F);
}

TEST(Optimiser, LeavesOutAnUpdateWithInfiniteGradients) {
  const std::vector<torch::Tensor> parameters = make_parameters();
  const std::vector<torch::Tensor> before = {parameters[0].detach().clone()};
  Optimiser optimiser(parameters, adam(1e-2, 0, false));
  set_gradients(parameters, 0);
  optimiser.step(torch::ones({}));
  EXPECT_TRUE(torch::equal(parameters[0], before[0]));
  EXPECT_EQ(optimiser.state().front().second.item<float>(), 0);
  optimiser.step(torch::zeros({}));
  EXPECT_FALSE(torch::equal(parameters[0], before[0]));
  EXPECT_EQ(optimiser.state().front().second.item<float>(), 1);
}

TEST(Optimiser, ZeroesGradientsInPlaceAndLeavesUndefinedOnes) {
  const std::vector<torch::Tensor> parameters = make_parameters();
  set_gradients(parameters, 0);
  parameters[1].mutable_grad() = torch::Tensor();
  const void* memory = parameters[0].grad().data_ptr();
  Optimiser optimiser(parameters, adam(1e-2, 0, false));
  const torch::Tensor before = parameters[1].detach().clone();
  optimiser.step();
  optimiser.zero_gradients();
  EXPECT_EQ(parameters[0].grad().data_ptr(), memory);
  EXPECT_EQ(parameters[0].grad().abs().sum().item<float>(), 0);
  EXPECT_FALSE(parameters[1].grad().defined());
  EXPECT_TRUE(torch::equal(parameters[1], before));
}

TEST(Optimiser, RefusesAStateOfAnotherRuleAndChangesNothing) {
  const std::vector<torch::Tensor> parameters = make_parameters();
  Optimiser one(parameters, adam(1e-2, 0, false));
  Optimiser two(parameters, sgd(0.1, 0.9, false, 0));
  set_gradients(parameters, 0);
  two.step();
  const auto loaded = one.load(two.state());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(one.state().front().second.item<float>(), 0);
  EXPECT_NE(loaded.error().message.find("4 tensors"), std::string::npos) << loaded.error().message;
}

TEST(Optimiser, KeepsTheParametersLayout) {
  const std::vector<torch::Tensor> parameters = make_parameters();
  const NamedTensors state = Optimiser(parameters, adam(1e-2, 0, false)).state();
  ASSERT_EQ(state[3].first, "exp_avg.2");
  EXPECT_EQ(state[3].second.strides(), parameters[2].strides());
}

}  // namespace
}  // namespace ergometer::workload
