// One LSTM layer on the CPU as a single autograd node: the same mathematics, parameters and gate order as
// torch::nn::LSTM (one layer, one direction, zero initial state), without its dozens of small operators per time step.
// Used by the networks in place of torch::nn::LSTM where can_fuse_lstm() says so; elsewhere (CUDA) cuDNN is faster.
#pragma once

#include <torch/torch.h>

namespace ergometer::workload {

// True on the CPU, in float32, for a hidden size that is a multiple of 16 and an input that needs no gradient.
[[nodiscard]] bool can_fuse_lstm(const torch::Tensor& input, const torch::Tensor& weight_hh);

// input: [batch, steps, features]; weights and biases as torch::nn::LSTM's weight_ih_l0, weight_hh_l0, bias_ih_l0 and
// bias_hh_l0. Returns h of every step, [batch, steps, hidden]. Uses at::get_num_threads() threads; the result does not
// depend on their number. Needs can_fuse_lstm().
[[nodiscard]] torch::Tensor fused_lstm(const torch::Tensor& input, const torch::Tensor& weight_ih,
                                       const torch::Tensor& weight_hh, const torch::Tensor& bias_ih,
                                       const torch::Tensor& bias_hh);

}  // namespace ergometer::workload
