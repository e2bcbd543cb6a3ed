// Number formats of a training or inference: fp32, fp32 with TF32 matrix products, and bf16 or fp16 by LibTorch's
// autocast with fp32 weights. Used by training and inference.
#pragma once

#include <torch/torch.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.hpp"

namespace ergometer::workload {

enum class Precision { fp32, tf32, bf16, fp16 };

// A usage error names the four.
[[nodiscard]] Result<Precision> parse_precision(std::string_view text);
// Sets the process's TF32 switches, on for tf32 alone; an error where the device cannot (tf32 and fp16 need CUDA).
[[nodiscard]] Result<Done> set_precision(Precision precision, const torch::Device& device);

// While it lives, operators of this thread choose their type as autocast does. Leaving the outermost one drops the
// casts of the weights that autocast keeps, so one that lives inside a recorded work belongs to it wholly.
class Autocast {
 public:
  Autocast(Precision precision, const torch::Device& device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_ = false;
  torch::DeviceType device_ = torch::kCPU;
  bool was_enabled_ = false;
  torch::ScalarType previous_ = torch::kFloat32;
};

// Dynamic loss scaling for fp16, on the device alone (may be recorded in a graph): starts at 65536, doubles after 2000
// good steps in a row, halves after a bad one, as PyTorch's GradScaler. For other precisions every function does
// nothing. A step is: backward of scale(loss), unscale, Optimiser::step, update.
class LossScaler {
 public:
  LossScaler(Precision precision, const torch::Device& device);
  torch::Tensor scale(const torch::Tensor& loss) const;
  // Divides the gradients by the scale; the result, to be given to Optimiser::step, is not 0 if one is not finite
  // (undefined for other precisions).
  torch::Tensor unscale(std::vector<torch::Tensor>& gradients);
  void update();

  // What a resumed training needs: "scale" and "growth_tracker", which share the scaler's memory; empty for other
  // precisions.
  std::vector<std::pair<std::string, torch::Tensor>> state() const;

 private:
  torch::Tensor scale_;      // scalar fp32
  torch::Tensor growth_;     // scalar int32: good steps in a row
  torch::Tensor found_inf_;  // scalar fp32, of this step
};

}  // namespace ergometer::workload
