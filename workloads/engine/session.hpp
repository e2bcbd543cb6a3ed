// What training and inference begin with: the device in the wanted number format, and the network on it. Also how
// LibTorch's exceptions become errors.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <exception>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/workload.hpp"
#include "engine/options.hpp"

namespace ergometer::workload {

using Clock = std::chrono::steady_clock;
[[nodiscard]] double seconds_since(Clock::time_point start);

// Sets threads, current GPU, number format and cuDNN's autotuning. A usage error for --compile graph without CUDA.
[[nodiscard]] Result<torch::Device> open_device(const RunOptions& options);

// Moves the network; on CUDA 4-dimensional parameters become channels-last if the workload says so.
void place(torch::nn::Module& network, const Workload& workload, const torch::Device& device);

[[nodiscard]] std::string_view name_of(Precision precision);

// "cuda:0, bf16, recorded graphs".
[[nodiscard]] std::string describe(const RunOptions& options, const torch::Device& device);

// " (mean predictor 0.02655, last week 0.00683)", or "" of none.
[[nodiscard]] std::string describe_baselines(const std::vector<std::pair<std::string, double>>& baselines);

// An exception of LibTorch or of the standard library as an error; out of memory names the batch size and the remedy.
[[nodiscard]] Error describe_exception(const std::exception& exception, const RunOptions& options);

// Prints what data sets left out, each note once: when they were opened and, called again, what was met since.
class NotePrinter {
 public:
  explicit NotePrinter(Console console) : console_(console) {}
  void print(const DataSet& data);

 private:
  Console console_;
  std::set<std::string> printed_;
};

}  // namespace ergometer::workload
