#include "vision/norm_act.hpp"

namespace ergometer::workload::vision {

torch::Tensor norm_relu(torch::nn::BatchNorm2d& norm, const torch::Tensor& input) {
  return norm->forward(input).relu_();
}

torch::Tensor norm_add_relu(torch::nn::BatchNorm2d& norm, const torch::Tensor& input, const torch::Tensor& residual) {
  return norm->forward(input).add_(residual).relu_();
}

}  // namespace ergometer::workload::vision
