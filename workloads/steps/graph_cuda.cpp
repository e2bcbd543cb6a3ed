#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include <exception>

#include "core/runtime.hpp"
#include "steps/graph.hpp"

// The order of steps is that of torch.cuda.graph (PyTorch's notes on CUDA semantics, "Whole-network capture").
namespace ergometer::workload {
namespace {

// All recordings are made on one stream, so that later ones can use the pool's blocks of earlier ones again.
c10::cuda::CUDAStream side_stream() {
  static const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
  return stream;
}

auto shared_pool() {
  static const auto pool = at::cuda::graph_pool_handle();
  return pool;
}

// `second` starts when what `first` holds now has ended.
void order(const c10::cuda::CUDAStream& first, const c10::cuda::CUDAStream& second) {
  at::cuda::CUDAEvent event;
  event.record(first);
  event.block(second);
}

class CudaRecording : public RecordedWork {
 public:
  void capture(const std::function<void()>& work) {
    // Other threads (loaders, NCCL's watchdog) allocate and query meanwhile, which the default mode would forbid.
    graph_.capture_begin(shared_pool(), cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      end_broken_capture();
      throw;
    }
    graph_.capture_end();
  }

  void replay() override { graph_.replay(); }

 private:
  // The stream must leave the capture; that the recording is void is known already.
  void end_broken_capture() {
    try {
      graph_.capture_end();
    } catch (const std::exception&) {
    }
  }

  at::cuda::CUDAGraph graph_;
};

Error refused(const std::string& reason) {
  return {Fault::data, fmt::format("the work cannot be recorded as a CUDA graph: {}", reason), "give --compile off"};
}

}  // namespace

bool RecordedWork::available() { return torch::cuda::is_available(); }

Result<std::unique_ptr<RecordedWork>> RecordedWork::record(const std::function<void()>& work, int warm_up) {
  try {
    const c10::cuda::CUDAStream current = c10::cuda::getCurrentCUDAStream();
    const c10::cuda::CUDAStream side = side_stream();
    auto recording = std::make_unique<CudaRecording>();
    order(current, side);
    {
      const c10::cuda::CUDAStreamGuard on_side(side);
      for (int i = 0; i < warm_up; ++i) work();
      c10::cuda::device_synchronize();
      c10::cuda::CUDACachingAllocator::emptyCache();  // the pool's memory is set apart from the rest
      recording->capture(work);
    }
    order(side, current);
    return std::unique_ptr<RecordedWork>(std::move(recording));
  } catch (const c10::Error& error) {
    return refused(brief(error));
  } catch (const std::exception& error) {  // cuDNN's front end has its own
    return refused(error.what());
  }
}

}  // namespace ergometer::workload
