// The network of load_lstm with its loss. Used by workload.cpp and the tests.
#pragma once

#include <torch/torch.h>

#include "core/task.hpp"

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

// Mean squared error of the scaled forecast. Batches hold input and target, each [batch, 168, 1] fp32. Accuracy means
// nothing here.
class Forecast final : public Task {
 public:
  torch::nn::Module& network() override { return *network_; }
  Outcome loss(const Batch& batch) override;
  torch::Tensor predict(const Batch& batch) override { return network_->forward(batch.tensors[0]); }

 private:
  Network network_;
};

}  // namespace ergometer::workload::load_lstm
