#include "language/networks/masked_task.hpp"

#include "language/data/masking.hpp"

namespace ergometer::workload::language {

Outcome MaskedTask::loss(const Batch& batch) {
  namespace F = torch::nn::functional;
  const torch::Tensor logits = network_->forward(batch.tensors[0]).flatten(0, 1);
  const torch::Tensor labels = batch.tensors[1].flatten();
  Outcome outcome;
  outcome.loss = F::cross_entropy(logits, labels, F::CrossEntropyFuncOptions().ignore_index(kNotScored));
  if (!network_->is_training()) {
    // A position without a label never agrees: no token has its number.
    outcome.correct = logits.argmax(-1).eq(labels).sum().to(torch::kFloat32);
    outcome.scored = labels.ne(kNotScored).sum().to(torch::kFloat32);
  }
  return outcome;
}

}  // namespace ergometer::workload::language
