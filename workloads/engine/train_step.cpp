#include "engine/train_step.hpp"

#include "engine/in_flight.hpp"
#include "engine/weights.hpp"

namespace ergometer::workload {

Result<torch::Tensor> TrainStep::operator()(const Batch& batch) {
  // Several ranks' gradients live in the buckets that are sent; alone they are made anew, which saves a pass over them.
  if (group_.rank().size > 1)
    optimiser_.zero_gradients();
  else
    optimiser_.release_gradients();
  Outcome outcome;
  {
    const Autocast autocast(precision_, device_);
    outcome = task_.loss(batch);
  }
  scaler_.scale(outcome.loss).backward();
  if (auto averaged = group_.finish_gradients(); !averaged) return averaged.error();
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& parameter : task_.network().parameters()) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  optimiser_.step(scaler_.unscale(gradients));
  scaler_.update();
  return pack_scores(outcome);
}

std::vector<torch::Tensor> TrainStep::changes() const {
  std::vector<torch::Tensor> tensors;
  for (const auto& [name, tensor] : named_tensors(task_.network())) tensors.push_back(tensor);
  for (const auto& [name, tensor] : optimiser_.state()) tensors.push_back(tensor);
  for (const auto& [name, tensor] : scaler_.state()) tensors.push_back(tensor);
  return tensors;
}

}  // namespace ergometer::workload
