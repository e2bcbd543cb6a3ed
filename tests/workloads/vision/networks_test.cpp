#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "vision/classifier.hpp"
#include "vision/norm_act.hpp"
#include "vision/workloads.hpp"

namespace ergometer::workload::vision {
namespace {

struct Case {
  const Workload* workload;
  std::int64_t parameters;
  std::int64_t channels;
  std::int64_t side;  // as small as the network takes
  std::int64_t classes;
  double learning_rate;
};

std::ostream& operator<<(std::ostream& out, const Case& given) { return out << given.workload->name; }

Batch random_batch(const Case& given, std::int64_t rows) {
  Batch batch;
  batch.tensors = {torch::randint(0, 256, {rows, given.channels, given.side, given.side}, torch::kUInt8),
                   torch::randint(0, given.classes, {rows}, torch::kInt64)};
  batch.samples = rows;
  return batch;
}

// Made once for all tests: drawing the initial weights of VGG-16 takes seconds. Tests set the mode that they need.
Task& task_of(const Workload& workload) {
  static std::map<std::string_view, std::unique_ptr<Task>> tasks;
  auto& task = tasks[workload.name];
  if (!task) {
    torch::manual_seed(3);
    task = workload.make_task({});
  }
  return *task;
}

double worst(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

class EveryNetwork : public testing::TestWithParam<Case> {
 protected:
  Task& task_ = task_of(*GetParam().workload);
};

TEST_P(EveryNetwork, HasThePublishedNumberOfParameters) {
  std::int64_t count = 0;
  for (const auto& parameter : task_.network().parameters()) count += parameter.numel();
  EXPECT_EQ(count, GetParam().parameters);
  EXPECT_EQ(count, GetParam().workload->parameters);
}

TEST_P(EveryNetwork, PredictsWhateverTheMemoryLayout) {
  const Batch batch = random_batch(GetParam(), 2);
  task_.network().eval();
  const torch::NoGradGuard no_gradient;
  const torch::Tensor logits = task_.predict(batch);
  EXPECT_EQ(logits.sizes(), (std::vector<std::int64_t>{2, GetParam().classes}));
  EXPECT_TRUE(torch::isfinite(logits).all().item<bool>());
  Batch other = batch;
  other.tensors[0] = batch.tensors[0].contiguous(torch::MemoryFormat::ChannelsLast);
  EXPECT_LT(worst(task_.predict(other), logits), 1e-4);
  EXPECT_GT(worst(logits[0], logits[1]), 1e-4) << "the output does not depend on the picture";
}

TEST_P(EveryNetwork, LossFallsOnOneBatch) {
  torch::manual_seed(4);
  task_.network().train();
  const Batch batch = random_batch(GetParam(), 4);
  torch::optim::SGD optimiser(task_.network().parameters(),
                              torch::optim::SGDOptions(GetParam().learning_rate).momentum(0.9));
  std::vector<double> losses;
  constexpr int kSteps = 4;
  for (int step = 0; step <= kSteps; ++step) {
    optimiser.zero_grad();
    const Outcome outcome = task_.loss(batch);
    EXPECT_EQ(outcome.loss.dim(), 0);
    EXPECT_EQ(outcome.scored.item<float>(), 4.0F);
    losses.push_back(outcome.loss.item<double>());
    if (step == kSteps) break;
    outcome.loss.backward();
    optimiser.step();
  }
  for (const auto& parameter : task_.network().named_parameters()) {
    EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
  }
  EXPECT_LT(*std::min_element(losses.begin() + 1, losses.end()), 0.8 * losses.front())
      << testing::PrintToString(losses);
}

TEST_P(EveryNetwork, PicturesWithoutALabelDoNotCount) {
  task_.network().eval();  // batch normalisation must not see the batch
  const torch::NoGradGuard no_gradient;
  Batch batch = random_batch(GetParam(), 3);
  Batch readable = batch;
  for (auto& tensor : readable.tensors) tensor = tensor.narrow(0, 0, 2).clone();
  const Outcome expected = task_.loss(readable);
  batch.tensors[1][2] = kNoLabel;
  const Outcome outcome = task_.loss(batch);
  EXPECT_NEAR(outcome.loss.item<double>(), expected.loss.item<double>(), 1e-4 * expected.loss.item<double>());
  EXPECT_EQ(outcome.scored.item<float>(), 2.0F);
  EXPECT_EQ(outcome.correct.item<float>(), expected.correct.item<float>());
  batch.tensors[1].fill_(kNoLabel);
  const Outcome nothing = task_.loss(batch);
  EXPECT_EQ(nothing.loss.item<float>(), 0.0F);
  EXPECT_EQ(nothing.scored.item<float>(), 0.0F);
  EXPECT_EQ(nothing.correct.item<float>(), 0.0F);
  batch.tensors[1] = task_.predict(batch).argmax(1);
  EXPECT_EQ(task_.loss(batch).correct.item<float>(), 3.0F);
}

INSTANTIATE_TEST_SUITE_P(Vision, EveryNetwork,
                         testing::Values(Case{&kVgg16, 138'357'544, 3, 32, 1000, 0.01},
                                         Case{&kResnet50, 25'557'032, 3, 64, 1000, 0.01},
                                         Case{&kInceptionV3, 27'161'264, 3, 75, 1000, 0.02},
                                         Case{&kXrayVgg19, 20'035'266, 1, 122, 2, 0.01}),
                         [](const auto& instance) { return std::string(instance.param.workload->name); });

std::set<std::string> state_names(const Workload& workload) {
  std::set<std::string> names;
  for (const auto& entry : task_of(workload).network().named_parameters()) names.insert(entry.key());
  for (const auto& entry : task_of(workload).network().named_buffers()) names.insert(entry.key());
  return names;
}

TEST(VisionNames, AreTorchvisions) {
  // Lengths of torchvision's state_dict() and our two buffers; and names that a wrong structure would miss.
  const auto resnet = state_names(kResnet50);
  EXPECT_EQ(resnet.size(), 320U + 2U);
  for (const char* name :
       {"conv1.weight", "bn1.running_var", "layer1.0.downsample.0.weight", "fc.bias",
        "layer1.0.downsample.1.num_batches_tracked", "layer4.2.bn3.weight", "layer3.5.conv2.weight"}) {
    EXPECT_EQ(resnet.count(name), 1U) << name;
  }
  const auto vgg = state_names(kVgg16);
  EXPECT_EQ(vgg.size(), 32U + 2U);
  for (const char* name : {"features.0.weight", "features.28.bias", "classifier.0.weight", "classifier.6.bias"}) {
    EXPECT_EQ(vgg.count(name), 1U) << name;
  }
  // 96 convolutions with normalisation (1 + 5 entries each) and two linear layers.
  const auto inception = state_names(kInceptionV3);
  EXPECT_EQ(inception.size(), 96U * 6U + 4U + 2U);
  for (const char* name :
       {"Conv2d_1a_3x3.conv.weight", "Mixed_5b.branch5x5_2.bn.running_mean", "AuxLogits.conv1.bn.bias",
        "AuxLogits.fc.weight", "Mixed_7c.branch3x3dbl_3b.conv.weight", "fc.weight"}) {
    EXPECT_EQ(inception.count(name), 1U) << name;
  }
  const auto xray = state_names(kXrayVgg19);
  EXPECT_EQ(xray.size(), 16U * 7U + 2U + 2U);
  for (const char* name : {"features.0.weight", "features.1.running_mean", "features.50.bias", "classifier.weight"}) {
    EXPECT_EQ(xray.count(name), 1U) << name;
  }
  EXPECT_EQ(xray.count("pixel_scale"), 1U);
  EXPECT_EQ(xray.count("pixel_offset"), 1U);
}

TEST(VisionNetworks, ResNetHasItsStrideInTheMiddle) {
  const auto modules = task_of(kResnet50).network().named_modules();
  const auto stride = [&](const char* name) {
    return (*modules[name]->as<torch::nn::Conv2d>()).options.stride()->at(0);
  };
  EXPECT_EQ(stride("layer2.0.conv1"), 1);
  EXPECT_EQ(stride("layer2.0.conv2"), 2);
  EXPECT_EQ(stride("layer2.0.downsample.0"), 2);
}

TEST(VisionNetworks, NormaliseByChannel) {
  const auto network = make_resnet50();
  const torch::Tensor images = torch::full({1, 3, 2, 2}, 51, torch::kUInt8);  // 0.2
  const torch::Tensor normal = network->normalise(images);
  EXPECT_EQ(normal.scalar_type(), torch::kFloat32);
  EXPECT_NEAR(normal[0][0][0][0].item<float>(), (0.2 - 0.485) / 0.229, 1e-6);
  EXPECT_NEAR(normal[0][2][1][1].item<float>(), (0.2 - 0.406) / 0.225, 1e-6);
  const torch::Tensor grey = make_xray_vgg19()->normalise(torch::full({1, 1, 1, 1}, 255, torch::kUInt8));
  EXPECT_NEAR(grey.item<float>(), (1 - 0.8180) / 0.1748, 1e-6);
}

TEST(VisionNetworks, AuxiliaryHeadOnlyTrains) {
  const auto network = make_inception_v3();
  const torch::Tensor images = torch::randn({2, 3, 75, 75});
  const torch::NoGradGuard no_gradient;
  EXPECT_EQ(network->forward(images).auxiliary.sizes(), (std::vector<std::int64_t>{2, 1000}));
  network->eval();
  EXPECT_FALSE(network->forward(images).auxiliary.defined());
  // Its loss counts with 0.4.
  Classifier task(network);
  network->train();
  for (auto& module : network->modules()) {
    if (auto* dropout = module->as<torch::nn::Dropout>()) dropout->options.p(0);
  }
  Batch batch;
  batch.tensors = {torch::randint(0, 256, {2, 3, 75, 75}, torch::kUInt8), torch::tensor({1, 2}, torch::kInt64)};
  const Logits logits = network->forward(network->normalise(batch.tensors[0]));
  const double expected = torch::cross_entropy_loss(logits.main, batch.tensors[1]).item<double>() +
                          0.4 * torch::cross_entropy_loss(logits.auxiliary, batch.tensors[1]).item<double>();
  EXPECT_NEAR(task.loss(batch).loss.item<double>(), expected, 1e-4 * expected);
}

TEST(NormAct, EqualsTheSeparateSteps) {
  torch::nn::BatchNorm2d norm(5);
  torch::nn::BatchNorm2d same(5);
  const torch::Tensor input = torch::randn({3, 5, 4, 4});
  const torch::Tensor residual = torch::randn({3, 5, 4, 4});
  const torch::Tensor kept = residual.clone();
  EXPECT_TRUE(torch::equal(norm_relu(norm, input), torch::relu(same->forward(input))));
  EXPECT_TRUE(torch::equal(norm_add_relu(norm, input, residual), torch::relu(same->forward(input) + residual)));
  EXPECT_TRUE(torch::equal(residual, kept));
  EXPECT_TRUE(torch::equal(norm->running_var, same->running_var));
}

}  // namespace
}  // namespace ergometer::workload::vision
