// The update rules behind Optimiser: SGD and Adam, for all parameters at once. Used by Optimiser only.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "steps/optimiser.hpp"

namespace ergometer::workload {

class UpdateRule {
 public:
  // The rule of `facts`, its state on the parameters' device and laid out as they are.
  static std::unique_ptr<UpdateRule> make(const std::vector<torch::Tensor>& parameters, const OptimiserFacts& facts);
  virtual ~UpdateRule() = default;
  UpdateRule(const UpdateRule&) = delete;
  UpdateRule& operator=(const UpdateRule&) = delete;

  // See Optimiser; called without gradient recording.
  void step(const torch::Tensor& found_inf);
  void set_learning_rate(double rate);
  NamedTensors state() const;

 protected:
  UpdateRule(const std::vector<torch::Tensor>& parameters, const OptimiserFacts& facts);
  // Tensors as the parameters, all 0, that state() calls NAME.0, NAME.1 ...
  std::size_t keep(const std::string& name);

  // Parameters that have a gradient, their gradients, and each kept kind of tensor in the order of keep().
  struct Given {
    std::vector<torch::Tensor> parameters;
    std::vector<torch::Tensor> gradients;
    std::vector<std::vector<torch::Tensor>> kept;
  };
  virtual void update(const Given& given, const torch::Tensor& found_inf) = 0;

  const OptimiserFacts facts_;
  const bool fused_;              // by LibTorch's fused CUDA operators, with the rate and the count on the device
  double rate_;                   // of the next step
  torch::Tensor rate_on_device_;  // scalar fp32, the same
  torch::Tensor count_;           // scalar fp32: updates made, as torch.optim's `step`

 private:
  struct Kept {
    std::string name;
    std::vector<torch::Tensor> tensors;
  };
  std::vector<torch::Tensor> parameters_;
  std::vector<Kept> kept_;
};

}  // namespace ergometer::workload
