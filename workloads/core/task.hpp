// A network with the loss that trains it. Implemented by each network's folder, run by training and inference.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/batch.hpp"

namespace ergometer::workload {

struct Outcome {
  torch::Tensor loss;     // scalar fp32: mean over the batch's samples (or its scored tokens); differentiable
  torch::Tensor correct;  // scalar fp32: predictions that are right; undefined where accuracy means nothing
  torch::Tensor scored;   // scalar fp32: predictions that `correct` counts; undefined with it
};

// Functions may be recorded in a CUDA graph: none waits for the device (no item(), no nonzero(), no boolean masks, no
// copy from the host), and sizes follow from the batch's sizes alone. Inputs are on the network's device.
class Task {
 public:
  virtual ~Task() = default;

  // Parameters are named and laid out as the reference implementation's, so that its weights load as they are.
  virtual torch::nn::Module& network() = 0;
  // Forward pass and loss, in whichever mode (train or eval) the network is.
  virtual Outcome loss(const Batch& batch) = 0;
  // What inference returns: logits, or forecasts; the first dimension is the batch's sample.
  virtual torch::Tensor predict(const Batch& batch) = 0;
};

}  // namespace ergometer::workload
