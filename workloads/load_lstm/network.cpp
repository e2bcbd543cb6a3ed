#include "load_lstm/network.hpp"

#include "load_lstm/layers/fused_lstm.hpp"

namespace ergometer::workload::load_lstm {

NetworkImpl::NetworkImpl()
    : lstm(register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(1, kHidden).batch_first(true)))),
      linear(register_module("linear", torch::nn::Linear(kHidden, 1))) {}

torch::Tensor NetworkImpl::forward(const torch::Tensor& input) {
  const auto weights = lstm->parameters(false);  // weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0
  const torch::Tensor hidden = can_fuse_lstm(input, weights[1])
                                   ? fused_lstm(input, weights[0], weights[1], weights[2], weights[3])
                                   : std::get<0>(lstm->forward(input));
  return torch::linear(hidden, linear->weight, linear->bias);  // the layer itself adds the bias apart
}

Outcome Forecast::loss(const Batch& batch) {
  const torch::Tensor forecast = network_->forward(batch.tensors[0]).to(torch::kFloat32);
  return {torch::mse_loss(forecast, batch.tensors[1]), {}, {}};
}

}  // namespace ergometer::workload::load_lstm
