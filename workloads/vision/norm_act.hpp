// Batch normalisation with the addition and the activation that follow it, in one place for all networks: one fused
// operator where it can be had (fused_norm.hpp), else PyTorch's. Used by the networks of this folder.
#pragma once

#include <torch/torch.h>

namespace ergometer::workload::vision {

// norm(input).
[[nodiscard]] torch::Tensor normalised(torch::nn::BatchNorm2d& norm, const torch::Tensor& input);

// max(0, norm(input)); the activation works in place on the normalisation's result, which its gradient does not need.
[[nodiscard]] torch::Tensor norm_relu(torch::nn::BatchNorm2d& norm, const torch::Tensor& input);

// max(0, norm(input) + residual), the end of a residual block; `residual` is only read.
[[nodiscard]] torch::Tensor norm_add_relu(torch::nn::BatchNorm2d& norm, const torch::Tensor& input,
                                          const torch::Tensor& residual);

}  // namespace ergometer::workload::vision
