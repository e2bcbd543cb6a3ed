// The network of load_lstm and its forward pass over windows. Used by train.cpp, infer.cpp, checkpoint.cpp.
#pragma once

#include <torch/torch.h>

#include "load_lstm/windows.hpp"

namespace ergometer::workload::load_lstm {

inline constexpr std::int64_t kHidden = 48;

// One LSTM layer (input 1, hidden 48), one linear layer 48 to 1: 9,841 parameters, in PyTorch 9,841 as well, under the
// names lstm.weight_ih_l0, lstm.weight_hh_l0, lstm.bias_ih_l0, lstm.bias_hh_l0, linear.weight, linear.bias.
struct NetworkImpl : torch::nn::Module {
  NetworkImpl();
  // [batch, 168, 1] to [batch, 168, 1]: the output at hour t of the input forecasts hour t + 168.
  torch::Tensor forward(const torch::Tensor& input);

  torch::nn::LSTM lstm;
  torch::nn::Linear linear;
};
TORCH_MODULE(Network);

struct Batch {
  torch::Tensor input;   // [batch, 168, 1]
  torch::Tensor target;  // [batch, 168, 1]
};

// The windows set.windows[order[first ...]] on the device; `order` empty: in their own order.
[[nodiscard]] Batch make_batch(const WindowSet& set, const std::vector<std::uint32_t>& order, std::int64_t first,
                               std::int64_t count, const torch::Device& device);

}  // namespace ergometer::workload::load_lstm
