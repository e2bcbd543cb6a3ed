// One optimiser step as a function of a batch: forward pass, backward pass, averaging over the ranks, update. It never
// waits for the device, so that it can be recorded. Used by training.
#pragma once

#include <vector>

#include "core/task.hpp"
#include "parallel/group.hpp"
#include "steps/optimiser.hpp"
#include "steps/precision.hpp"

namespace ergometer::workload {

class TrainStep {
 public:
  // All outlive it. The task's network is on the device.
  TrainStep(Task& task, Optimiser& optimiser, Group& group, Precision precision, const torch::Device& device)
      : task_(task),
        optimiser_(optimiser),
        group_(group),
        scaler_(precision, device),
        precision_(precision),
        device_(device) {}

  // See pack_scores(). Errors: another rank is lost.
  Result<torch::Tensor> operator()(const Batch& batch);
  // What a step changes: network, optimiser and loss scale.
  std::vector<torch::Tensor> changes() const;
  NamedTensors scaler_state() const { return scaler_.state(); }

 private:
  Task& task_;
  Optimiser& optimiser_;
  Group& group_;
  LossScaler scaler_;
  Precision precision_;
  torch::Device device_;
};

}  // namespace ergometer::workload
