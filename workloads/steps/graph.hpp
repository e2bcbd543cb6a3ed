// Work on the GPU that is recorded once and replayed as one launch (CUDA graph). Used by training and inference with
// --compile graph. Without CUDA, or before LibTorch 2.3, it does not exist: available() is false.
#pragma once

#include <functional>
#include <memory>

#include "core/result.hpp"

namespace ergometer::workload {

class RecordedWork {
 public:
  // Whether this build and machine can record.
  static bool available();
  // Runs `work` `warm_up` times on a side stream (allocations, autotuning), then records it. `work` reads and writes
  // the same tensors each time and never waits for the device. Tensors made by `work` may be kept: a replay writes them
  // anew. Recordings share one memory pool; all of a process are made and replayed by one thread, one at a time, on one
  // device. An error carries LibTorch's reason; LibTorch does not clean up after it, so the device is then of no more
  // use to this process.
  static Result<std::unique_ptr<RecordedWork>> record(const std::function<void()>& work, int warm_up = 3);
  virtual ~RecordedWork() = default;
  // Enqueues the work on the current stream.
  virtual void replay() = 0;
};

}  // namespace ergometer::workload
