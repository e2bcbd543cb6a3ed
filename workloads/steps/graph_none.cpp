#include "steps/graph.hpp"

namespace ergometer::workload {

bool RecordedWork::available() { return false; }

Result<std::unique_ptr<RecordedWork>> RecordedWork::record(const std::function<void()>& work, int warm_up) {
  static_cast<void>(work);
  static_cast<void>(warm_up);
  return Error{Fault::usage, "this build cannot record CUDA graphs",
               "build against a LibTorch from 2.3 on with CUDA, or give --compile off"};
}

}  // namespace ergometer::workload
