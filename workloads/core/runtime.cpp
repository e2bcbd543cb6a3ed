#include "core/runtime.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <sched.h>

#include <cstdlib>
#include <thread>

#include "core/text.hpp"

namespace ergometer::workload {
namespace {

// The processors that this process may use, not those of the machine: containers and job managers set the mask.
int usable_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

int default_threads() {
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    if (const auto number = parse_integer(text); number && *number > 0 && *number < 4096) {
      return static_cast<int>(*number);
    }
  }
  return usable_processors();
}

}  // namespace

Result<torch::Device> prepare(const RuntimeOptions& options) {
  at::set_num_threads(options.threads > 0 ? options.threads : default_threads());
  if (options.device == "cpu") return torch::Device(torch::kCPU);
  if (!torch::cuda::is_available()) {
    return Error{
        Fault::data, "no CUDA device is available to LibTorch",
        "use --device cpu, or build against a LibTorch with CUDA and check that the driver answers (nvidia-smi)"};
  }
  return torch::Device(torch::kCUDA, 0);
}

std::string describe(const torch::Device& device) {
  if (device.is_cuda()) return "cuda:0";
  const int threads = at::get_num_threads();
  return fmt::format("cpu, {} thread{}", threads, threads == 1 ? "" : "s");
}

std::string brief(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

}  // namespace ergometer::workload
