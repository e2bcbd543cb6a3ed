// A small network in fp64 whose gradients fill several buckets, and its data. Used by the tests of several ranks, on
// both sides.
#pragma once

#include <torch/torch.h>

namespace ergometer::test {

struct ToyNetworkImpl : torch::nn::Module {
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3).padding(1)));
  torch::nn::Linear wide = register_module("wide", torch::nn::Linear(4 * 8 * 8, 640));  // 1.3 MB
  torch::nn::Linear head = register_module("head", torch::nn::Linear(640, 3));
  torch::Tensor unused = register_parameter("unused", torch::ones({5}));
  torch::Tensor frozen = register_parameter("frozen", torch::ones({7}), /*requires_grad=*/false);

  torch::Tensor forward(const torch::Tensor& input) {
    return head->forward(torch::tanh(wide->forward(torch::relu(conv->forward(input)).flatten(1))));
  }
};
TORCH_MODULE(ToyNetwork);

// The same weights for a seed, the convolution's laid out channels last.
inline ToyNetwork make_toy(std::uint64_t seed) {
  torch::manual_seed(seed);
  ToyNetwork network;
  network->to(torch::kFloat64);
  network->conv->weight.set_data(network->conv->weight.detach().contiguous(torch::MemoryFormat::ChannelsLast));
  return network;
}

// Mean over the samples [first, first + count) of pass number `pass`.
inline torch::Tensor toy_loss(ToyNetwork& network, std::int64_t pass, std::int64_t first, std::int64_t count) {
  const auto samples = torch::arange(first, first + count, torch::kFloat64).view({-1, 1, 1, 1});
  const auto pixels = torch::arange(3 * 8 * 8, torch::kFloat64).view({1, 3, 8, 8});
  const auto input = torch::sin(samples * 1.7 + pixels * 0.31 + static_cast<double>(pass));
  return network->forward(input).pow(2).mean();
}

}  // namespace ergometer::test
