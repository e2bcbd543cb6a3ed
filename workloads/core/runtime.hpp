// Device, threads and seed of a LibTorch program, from the command line's words. Used by every workload before it
// touches a tensor.
#pragma once

#include <torch/torch.h>

#include <string>

#include "core/result.hpp"

namespace ergometer::workload {

struct RuntimeOptions {
  std::string device = "cpu";  // "cpu" or "cuda"
  int threads = 0;             // 0: OMP_NUM_THREADS, else all usable processors
  int local_rank = 0;          // of several processes on this machine: chooses the GPU
  int local_ranks = 1;         // that share the usable processors, unless `threads` says otherwise
};

// Sets the number of threads and the current GPU; a data error if the device is not there.
[[nodiscard]] Result<torch::Device> prepare(const RuntimeOptions& options);

// "cpu, 2 threads" or "cuda:0", for the first line of output.
[[nodiscard]] std::string describe(const torch::Device& device);

// The first line of a LibTorch exception, without its C++ backtrace.
[[nodiscard]] std::string brief(const c10::Error& error);

}  // namespace ergometer::workload
