#include "core/runtime.hpp"

#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/gpu_choice.hpp"
#include "core/processors.hpp"
#include "core/text.hpp"

namespace ergometer::workload {
namespace {

int default_threads(int local_ranks) {
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    if (const auto number = parse_integer(text); number && *number > 0 && *number < 4096) {
      return static_cast<int>(*number);
    }
  }
  return std::max(1, usable_processors() / std::max(1, local_ranks));
}

Result<torch::Device> gpu(int local_rank) {
  const auto index = gpu_of(local_rank, static_cast<int>(torch::cuda::device_count()));
  if (!index) return index.error();
  const torch::Device device(torch::kCUDA, static_cast<torch::DeviceIndex>(*index));
  c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
  return device;
}

}  // namespace

Result<torch::Device> prepare(const RuntimeOptions& options) {
  at::set_num_threads(options.threads > 0 ? options.threads : default_threads(options.local_ranks));
  if (options.device == "cpu") return torch::Device(torch::kCPU);
  if (!torch::cuda::is_available()) {
    return Error{
        Fault::data, "no CUDA device is available to LibTorch",
        "use --device cpu, or build against a LibTorch with CUDA and check that the driver answers (nvidia-smi)"};
  }
  return gpu(options.local_rank);
}

std::string describe(const torch::Device& device) {
  if (device.is_cuda()) return device.str();
  const int threads = at::get_num_threads();
  return fmt::format("cpu, {} thread{}", threads, threads == 1 ? "" : "s");
}

std::string brief(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

}  // namespace ergometer::workload
