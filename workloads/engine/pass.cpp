#include "engine/pass.hpp"

namespace ergometer::workload {
namespace {

// Enqueues the work of the next batch; false at the end.
Result<bool> submit_next(Loader& loader, BatchWork& work, InFlight& in_flight) {
  auto next = loader.next();
  if (!next) return next.error();
  if (!*next) return false;
  const Batch batch = loader.to_device(std::move(**next));
  const auto scores = work.run(batch);
  if (!scores) return scores.error();
  in_flight.submit(batch, *scores);
  return true;
}

}  // namespace

Result<Done> run_pass(Loader& loader, std::vector<PlannedBatch> plan, BatchWork& work, const torch::Device& device,
                      const std::function<Result<Done>(const Finished&)>& finished) {
  InFlight in_flight(device);
  loader.begin(std::move(plan));
  bool more = true;
  while (more) {
    const auto submitted = submit_next(loader, work, in_flight);
    if (!submitted) return submitted.error();
    more = *submitted;
    while (in_flight.full() || (!more && !in_flight.empty())) {
      if (auto done = finished(in_flight.take()); !done) return done;
    }
  }
  return Done{};
}

}  // namespace ergometer::workload
