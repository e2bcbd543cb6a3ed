#include "engine/batch_work.hpp"

#include <algorithm>
#include <optional>

#include "engine/weights.hpp"

namespace ergometer::workload {
namespace {

// The last batch of a pass may be smaller than the recorded ones.
bool fits(const Batch& recorded, const Batch& batch) {
  return std::equal(recorded.tensors.begin(), recorded.tensors.end(), batch.tensors.begin(), batch.tensors.end(),
                    [](const torch::Tensor& a, const torch::Tensor& b) { return a.sizes() == b.sizes(); });
}

}  // namespace

Result<torch::Tensor> BatchWork::run(const Batch& batch) {
  if (!graphs_) return function_(batch);
  auto found = recordings_.find(batch.shape);
  if (found == recordings_.end()) {
    const auto recorded = record(batch);
    if (!recorded) return recorded.error();
    found = recordings_.find(batch.shape);
  }
  Recording& recording = found->second;
  if (!fits(recording.input, batch)) return function_(batch);
  for (std::size_t i = 0; i < batch.tensors.size(); ++i) {
    recording.input.tensors[i].copy_(batch.tensors[i], /*non_blocking=*/true);
  }
  recording.work->replay();
  return recording.result;
}

Result<BatchWork::Recording*> BatchWork::record(const Batch& batch) {
  Recording recording;
  recording.input = batch;
  for (torch::Tensor& tensor : recording.input.tensors) tensor = tensor.clone();
  const Snapshot before(changes_());
  std::optional<Error> failed;
  auto work = RecordedWork::record([&] {
    auto result = function_(recording.input);
    if (result) {
      recording.result = *result;
    } else {
      failed = result.error();
    }
  });
  if (failed) return *failed;
  if (!work) return work.error();
  before.restore();
  recording.work = std::move(*work);
  return &recordings_.emplace(batch.shape, std::move(recording)).first->second;
}

}  // namespace ergometer::workload
