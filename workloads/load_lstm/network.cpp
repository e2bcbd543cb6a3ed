#include "load_lstm/network.hpp"

#include <algorithm>

#include "layers/fused_lstm.hpp"

namespace ergometer::workload::load_lstm {

NetworkImpl::NetworkImpl()
    : lstm(register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(1, kHidden).batch_first(true)))),
      linear(register_module("linear", torch::nn::Linear(kHidden, 1))) {}

torch::Tensor NetworkImpl::forward(const torch::Tensor& input) {
  const auto weights = lstm->parameters(false);  // weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0
  const torch::Tensor hidden = can_fuse_lstm(input, weights[1])
                                   ? fused_lstm(input, weights[0], weights[1], weights[2], weights[3])
                                   : std::get<0>(lstm->forward(input));
  return linear->forward(hidden);
}

Batch make_batch(const WindowSet& set, const std::vector<std::uint32_t>& order, std::int64_t first, std::int64_t count,
                 const torch::Device& device) {
  torch::Tensor input = torch::empty({count, kInputHours, 1});
  torch::Tensor target = torch::empty({count, kForecastHours, 1});
  float* to_input = input.data_ptr<float>();
  float* to_target = target.data_ptr<float>();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto place = static_cast<std::size_t>(first + i);
    const float* values = set.values(set.windows[order.empty() ? place : order[place]]);
    std::copy_n(values, kInputHours, to_input + i * kInputHours);
    std::copy_n(values + kInputHours, kForecastHours, to_target + i * kForecastHours);
  }
  return {input.to(device), target.to(device)};
}

}  // namespace ergometer::workload::load_lstm
