#include "steps/precision.hpp"

#include <gtest/gtest.h>

#include "steps/graph.hpp"

namespace ergometer::workload {
namespace {

torch::ScalarType product_type() {
  return torch::mm(torch::ones({2, 2}), torch::ones({2, 2}).requires_grad_()).scalar_type();
}

TEST(Precision, ParsesItsNamesAndNamesThemOtherwise) {
  EXPECT_EQ(*parse_precision("fp32"), Precision::fp32);
  EXPECT_EQ(*parse_precision("tf32"), Precision::tf32);
  EXPECT_EQ(*parse_precision("bf16"), Precision::bf16);
  EXPECT_EQ(*parse_precision("fp16"), Precision::fp16);
  const auto wrong = parse_precision("bf32");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().fault, Fault::usage);
  EXPECT_EQ(wrong.error().hint, "give fp32, tf32, bf16 or fp16");
}

TEST(Precision, TheCpuHasNoTf32AndFp16) {
  EXPECT_FALSE(set_precision(Precision::tf32, torch::kCPU));
  EXPECT_FALSE(set_precision(Precision::fp16, torch::kCPU));
  EXPECT_TRUE(set_precision(Precision::bf16, torch::kCPU));
  EXPECT_TRUE(set_precision(Precision::fp32, torch::kCPU));
}

TEST(Autocast, ComputesInBf16OnlyWhileItLives) {
  {
    const Autocast none(Precision::fp32, torch::kCPU);
    EXPECT_EQ(product_type(), torch::kFloat32);
  }
  {
    const Autocast outer(Precision::bf16, torch::kCPU);
    EXPECT_EQ(product_type(), torch::kBFloat16);
    { const Autocast inner(Precision::bf16, torch::kCPU); }
    EXPECT_EQ(product_type(), torch::kBFloat16);
  }
  EXPECT_EQ(product_type(), torch::kFloat32);
}

TEST(Autocast, ForgetsCastsOfWeights) {
  torch::Tensor weight = torch::ones({2, 2}).requires_grad_();
  const auto product = [&] {
    const Autocast on(Precision::bf16, torch::kCPU);
    return torch::mm(torch::ones({2, 2}), weight)[0][0].item<float>();
  };
  EXPECT_EQ(product(), 2);
  {
    const torch::NoGradGuard no_gradient;
    weight.mul_(2);
  }
  EXPECT_EQ(product(), 4);
}

TEST(LossScaler, DoesNothingForOtherPrecisions) {
  LossScaler scaler(Precision::bf16, torch::kCPU);
  EXPECT_EQ(scaler.scale(torch::full({}, 3.0)).item<float>(), 3);
  std::vector<torch::Tensor> gradients = {torch::ones({2})};
  EXPECT_FALSE(scaler.unscale(gradients).defined());
  scaler.update();
  EXPECT_TRUE(scaler.state().empty());
}

// On the CPU LibTorch has the two operators only in later versions, so the rest is for CUDA.
TEST(LossScaler, HalvesAfterABadStepAndUnscales) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no CUDA device";
  LossScaler scaler(Precision::fp16, torch::kCUDA);
  EXPECT_EQ(scaler.scale(torch::ones({}, torch::kCUDA)).item<float>(), 65536);
  std::vector<torch::Tensor> gradients = {torch::full({2}, 65536.0, torch::kCUDA)};
  EXPECT_EQ(scaler.unscale(gradients).item<float>(), 0);
  EXPECT_EQ(gradients[0][0].item<float>(), 1);
  scaler.update();
  EXPECT_EQ(scaler.state()[1].second.item<int>(), 1);
  gradients[0].fill_(std::numeric_limits<double>::infinity());
  EXPECT_NE(scaler.unscale(gradients).item<float>(), 0);
  scaler.update();
  EXPECT_EQ(scaler.state()[0].second.item<float>(), 32768);
}

TEST(RecordedWork, IsReplayedOnTheSameTensors) {
  if (!RecordedWork::available()) {
    const auto refused = RecordedWork::record([] {});
    ASSERT_FALSE(refused);
    EXPECT_FALSE(refused.error().hint.empty());
    GTEST_SKIP() << "no CUDA graphs in this build";
  }
  torch::Tensor input = torch::ones({4}, torch::kCUDA);
  torch::Tensor output;
  const auto work = RecordedWork::record([&] { output = input * 2; });
  ASSERT_TRUE(work) << work.error().message;
  input.fill_(5);
  (*work)->replay();
  EXPECT_EQ(output[0].item<float>(), 10);
  const auto broken = RecordedWork::record([&] { output = torch::full({}, input[0].item<float>()); }, 0);
  EXPECT_FALSE(broken);
}

}  // namespace
}  // namespace ergometer::workload
