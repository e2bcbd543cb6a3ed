// One pass over planned batches: load, move, compute, fetch the scores. Used for epochs, validations and warm-ups.
#pragma once

#include <functional>
#include <vector>

#include "engine/batch_work.hpp"
#include "engine/in_flight.hpp"
#include "engine/loader.hpp"

namespace ergometer::workload {

// Runs `work`, whose result is of pack_scores(), on each batch of the plan. `finished` gets them in order when they are
// done; on CUDA the next batch has been handed to the device by then, so that it never idles. The first error ends it.
[[nodiscard]] Result<Done> run_pass(Loader& loader, std::vector<PlannedBatch> plan, BatchWork& work,
                                    const torch::Device& device,
                                    const std::function<Result<Done>(const Finished&)>& finished);

}  // namespace ergometer::workload
