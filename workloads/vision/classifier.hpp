// The task of the vision workloads: cross entropy of a network's classes. Used by the workloads' table.
//
// Batch::tensors = {images, labels}, the only form, of files, synthetic data and parity data alike:
//   images  uint8 [batch, channels, size, size] in any memory layout (the data sets give channels_last: the bytes of a
//           decoded picture), 0 to 255; normalised on the device, since a byte a value is a quarter of the transfer;
//   labels  int64 [batch]; kNoLabel where the picture could not be read or is padding.
#pragma once

#include <memory>

#include "core/task.hpp"
#include "vision/networks.hpp"

namespace ergometer::workload::vision {

inline constexpr std::int64_t kNoLabel = -100;

class Classifier : public Task {
 public:
  explicit Classifier(std::shared_ptr<ImageNetwork> network) : network_(std::move(network)) {}

  torch::nn::Module& network() override { return *network_; }
  // Mean over the labelled pictures, 0 if there is none. In training the auxiliary head's loss is added with the
  // weight 0.4 (torchvision's training script).
  Outcome loss(const Batch& batch) override;
  // [batch, classes]
  torch::Tensor predict(const Batch& batch) override;

 private:
  std::shared_ptr<ImageNetwork> network_;
};

}  // namespace ergometer::workload::vision
