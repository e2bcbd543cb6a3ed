// Masked language modelling as a Task: the network, and cross-entropy over the positions that have a label. Used by the
// workloads' entries.
#pragma once

#include <memory>

#include "core/task.hpp"
#include "language/networks/masked_model.hpp"

namespace ergometer::workload::language {

// Batches are those of data/packed_set.hpp. Logits are made for all positions, not only for the scored, as in the
// reference: the work per step is the same.
class MaskedTask : public Task {
 public:
  explicit MaskedTask(std::shared_ptr<MaskedModel> network) : network_(std::move(network)) {}

  torch::nn::Module& network() override { return *network_; }
  // Mean over the scored positions of the batch. `correct` and `scored` only in evaluation: an arg-max over 30,522
  // logits of each position would be a few percent of a training step that the reference does not spend.
  Outcome loss(const Batch& batch) override;
  // Logits, [B, S, kVocabularySize].
  torch::Tensor predict(const Batch& batch) override { return network_->forward(batch.tensors[0]); }

 private:
  std::shared_ptr<MaskedModel> network_;
};

}  // namespace ergometer::workload::language
