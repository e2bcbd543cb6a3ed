// Batch normalisation, addition and activation of a training step in three kernels forward and three backward instead
// of PyTorch's five and more, which read and write the pictures again for each part. Used by norm_act.cpp. The kernels
// are compiled by NVRTC at first use: no nvcc, any CUDA LibTorch.
#pragma once

#include <torch/torch.h>

#include <optional>

namespace ergometer::workload::vision {

// Whether fused_norm takes `input` [N, C, H, W]: on CUDA, in training, channels-last, fp32, fp16 or bf16, a number of
// channels that fills 16 bytes, parameters and running statistics in fp32, and `residual`, if defined, of the same
// form. False in a build without CUDA and where NVRTC does not know the device.
[[nodiscard]] bool can_fuse_norm(const torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& input,
                                 const torch::Tensor& residual = {});

// norm(input), plus `residual` if defined, cut at 0 if `relu`; updates the running statistics as BatchNorm2d does. Sums
// in fp32 around the first picture's value, in a fixed order: the same input gives the same bits.
[[nodiscard]] torch::Tensor fused_norm(torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& input, bool relu,
                                       const torch::Tensor& residual = {});

}  // namespace ergometer::workload::vision
