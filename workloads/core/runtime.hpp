// Device, threads and seed of a LibTorch program, from the command line's words. Used by every workload before it
// touches a tensor.
#pragma once

#include <torch/torch.h>

#include <string>

#include "core/workload.hpp"

namespace ergometer::workload {

// Sets the number of threads; a data error if the device is not there.
[[nodiscard]] Result<torch::Device> prepare(const RuntimeOptions& options);

// "cpu, 2 threads" or "cuda:0", for the first line of output.
[[nodiscard]] std::string describe(const torch::Device& device);

// The first line of a LibTorch exception, without its C++ backtrace.
[[nodiscard]] std::string brief(const c10::Error& error);

}  // namespace ergometer::workload
