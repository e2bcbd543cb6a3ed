// Small results of work on the device, fetched to the host without stopping the device: the host hands over the next
// work before it waits for the former one. Used by training and validation.
#pragma once

#include <torch/torch.h>

#include <deque>
#include <memory>

#include "core/batch.hpp"
#include "core/task.hpp"

namespace ergometer::workload {

// Of one batch, on the host; see Outcome. `correct` and `scored` are NaN where the task has none.
struct Scores {
  double loss = 0;
  double correct = 0;
  double scored = 0;
};

// [loss, correct, scored] as one fp32 tensor on the outcome's device, for submit(). May be recorded.
[[nodiscard]] torch::Tensor pack_scores(const Outcome& outcome);

// A batch (its numbers, without tensors) whose work is done.
struct Finished {
  Batch batch;
  Scores scores;
};

class InFlight {
 public:
  explicit InFlight(const torch::Device& device) : device_(device) {}

  // Takes scores that are being computed on the device; their tensor may be overwritten by work that is enqueued later.
  void submit(const Batch& batch, const torch::Tensor& scores);
  // Whether the host should take() before it submits more: on CUDA from two on, on the CPU from one on.
  bool full() const { return waiting_.size() > (device_.is_cuda() ? 1U : 0U); }
  bool empty() const { return waiting_.empty(); }
  // Waits for the oldest submission and everything enqueued before it. Not when empty.
  Finished take();

 private:
  struct Submission {
    Batch batch;
    torch::Tensor host;  // [3] fp32; page-locked for CUDA
    std::shared_ptr<c10::Event> copied;
  };
  torch::Device device_;
  std::deque<Submission> waiting_;
};

}  // namespace ergometer::workload
