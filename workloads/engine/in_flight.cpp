#include "engine/in_flight.hpp"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <limits>
#include <thread>

namespace ergometer::workload {
namespace {

torch::Tensor scalar(const torch::Tensor& value, const torch::Tensor& like) {
  if (value.defined()) return value.detach().to(torch::kFloat32).reshape({});
  return torch::full({}, std::numeric_limits<double>::quiet_NaN(), like.options().dtype(torch::kFloat32));
}

}  // namespace

torch::Tensor pack_scores(const Outcome& outcome) {
  const torch::NoGradGuard no_gradient;
  return torch::stack({scalar(outcome.loss, outcome.loss), scalar(outcome.correct, outcome.loss),
                       scalar(outcome.scored, outcome.loss)});
}

void InFlight::submit(const Batch& batch, const torch::Tensor& scores) {
  const Batch counts{{}, batch.samples, batch.tokens, batch.shape, batch.skipped};
  if (device_.is_cpu()) {
    waiting_.push_back({counts, scores, nullptr});
    return;
  }
  Submission submission{counts, torch::empty({3}, torch::TensorOptions(torch::kFloat32).pinned_memory(true)),
                        std::make_shared<c10::Event>(device_.type())};
  submission.host.copy_(scores, /*non_blocking=*/true);
  submission.copied->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  waiting_.push_back(std::move(submission));
}

Finished InFlight::take() {
  const Submission oldest = std::move(waiting_.front());
  waiting_.pop_front();
  // query() and not synchronize(), which LibTorch 1.13's device-independent event lacks.
  while (oldest.copied && !oldest.copied->query()) std::this_thread::yield();
  const float* value = oldest.host.data_ptr<float>();
  return {oldest.batch, {value[0], value[1], value[2]}};
}

}  // namespace ergometer::workload
