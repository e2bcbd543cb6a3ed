#include "vision/classifier.hpp"

namespace ergometer::workload::vision {
namespace {

constexpr double kAuxiliaryWeight = 0.4;

// Sum over the labelled pictures, in fp32 also where the network computes in fewer bits.
torch::Tensor summed_loss(const torch::Tensor& logits, const torch::Tensor& labels) {
  namespace F = torch::nn::functional;
  return F::cross_entropy(logits.to(torch::kFloat32), labels,
                          F::CrossEntropyFuncOptions().ignore_index(kNoLabel).reduction(torch::kSum));
}

}  // namespace

Outcome Classifier::loss(const Batch& batch) {
  const torch::Tensor& labels = batch.tensors[1];
  const Logits logits = network_->forward(network_->normalise(batch.tensors[0]));
  torch::Tensor sum = summed_loss(logits.main, labels);
  if (logits.auxiliary.defined()) sum = sum + kAuxiliaryWeight * summed_loss(logits.auxiliary, labels);
  Outcome outcome;
  outcome.scored = labels.ne(kNoLabel).sum().to(torch::kFloat32);
  outcome.correct = logits.main.detach().argmax(1).eq(labels).sum().to(torch::kFloat32);
  outcome.loss = sum / outcome.scored.clamp_min(1);
  return outcome;
}

torch::Tensor Classifier::predict(const Batch& batch) {
  return network_->forward(network_->normalise(batch.tensors[0])).main;
}

}  // namespace ergometer::workload::vision
