#include "vision/norm_act.hpp"

#include "vision/fused_norm.hpp"

namespace ergometer::workload::vision {

torch::Tensor normalised(torch::nn::BatchNorm2d& norm, const torch::Tensor& input) {
  if (can_fuse_norm(*norm, input)) return fused_norm(*norm, input, false);
  return norm->forward(input);
}

torch::Tensor norm_relu(torch::nn::BatchNorm2d& norm, const torch::Tensor& input) {
  if (can_fuse_norm(*norm, input)) return fused_norm(*norm, input, true);
  return norm->forward(input).relu_();
}

torch::Tensor norm_add_relu(torch::nn::BatchNorm2d& norm, const torch::Tensor& input, const torch::Tensor& residual) {
  if (can_fuse_norm(*norm, input, residual)) return fused_norm(*norm, input, true, residual);
  return norm->forward(input).add_(residual).relu_();
}

}  // namespace ergometer::workload::vision
