// A function of a batch on the device (a training step, a validation, a forward pass), run operator by operator or
// recorded as a CUDA graph, one for each static shape of batches. Used by training and inference.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/batch.hpp"
#include "core/result.hpp"
#include "steps/graph.hpp"

namespace ergometer::workload {

class BatchWork {
 public:
  using Function = std::function<Result<torch::Tensor>(const Batch&)>;
  // Tensors that the function changes beside its result. Recording runs it several times; they are put back after.
  using Changes = std::function<std::vector<torch::Tensor>()>;

  BatchWork(
      Function function, bool graphs, Changes changes = [] { return std::vector<torch::Tensor>(); })
      : function_(std::move(function)), changes_(std::move(changes)), graphs_(graphs) {}

  // Enqueues the work for this batch, which is on the device, and returns its result there; the next run of the same
  // shape overwrites it. The first batch of a shape is recorded.
  Result<torch::Tensor> run(const Batch& batch);
  std::size_t recordings() const { return recordings_.size(); }

 private:
  struct Recording {
    Batch input;  // each batch is copied into these tensors
    torch::Tensor result;
    std::unique_ptr<RecordedWork> work;
  };
  Result<Recording*> record(const Batch& batch);

  Function function_;
  Changes changes_;
  bool graphs_;
  std::map<std::size_t, Recording> recordings_;  // by shape
};

}  // namespace ergometer::workload
