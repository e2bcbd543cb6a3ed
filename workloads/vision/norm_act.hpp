// Batch normalisation with the activation that follows it, in one place for all networks, so that one fused operator
// can replace the separate ones. Used by the networks of this folder.
#pragma once

#include <torch/torch.h>

namespace ergometer::workload::vision {

// max(0, norm(input)); the activation works in place on the normalisation's result, which its gradient does not need.
[[nodiscard]] torch::Tensor norm_relu(torch::nn::BatchNorm2d& norm, const torch::Tensor& input);

// max(0, norm(input) + residual), the end of a residual block; `residual` is only read.
[[nodiscard]] torch::Tensor norm_add_relu(torch::nn::BatchNorm2d& norm, const torch::Tensor& input,
                                          const torch::Tensor& residual);

}  // namespace ergometer::workload::vision
