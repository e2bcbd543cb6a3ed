#include "engine/session.hpp"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <ostream>

#include "core/runtime.hpp"

namespace ergometer::workload {
namespace {

// LibTorch has a type of its own for the GPU's memory only.
bool out_of_memory(std::string_view text) {
  for (const std::string_view words : {"out of memory", "not enough memory", "allocate memory"}) {
    if (text.find(words) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

std::string_view name_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::tf32:
      return "tf32";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
  }
  return {};
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Result<torch::Device> open_device(const RunOptions& options) {
  if (options.graphs && options.runtime.device != "cuda") {
    return Error{Fault::usage, "--compile graph needs --device cuda", "leave --compile out, or add --device cuda"};
  }
  const auto device = prepare(options.runtime);
  if (!device) return device;
  if (auto set = set_precision(options.precision, *device); !set) return set.error();
  // Batches have few sizes: it pays to let cuDNN try its algorithms for each.
  at::globalContext().setBenchmarkCuDNN(device->is_cuda());
  return device;
}

void place(torch::nn::Module& network, const Workload& workload, const torch::Device& device) {
  network.to(device);
  if (!device.is_cuda() || !workload.channels_last) return;
  for (torch::Tensor& parameter : network.parameters()) {
    if (parameter.dim() == 4) parameter.set_data(parameter.detach().contiguous(torch::MemoryFormat::ChannelsLast));
  }
}

std::string describe(const RunOptions& options, const torch::Device& device) {
  return fmt::format("{}, {}{}", describe(device), name_of(options.precision),
                     options.graphs ? ", recorded graphs" : "");
}

std::string describe_baselines(const std::vector<std::pair<std::string, double>>& baselines) {
  std::string text;
  for (const auto& [name, loss] : baselines) {
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    text += fmt::format("{}{} {:.5f}", text.empty() ? " (" : ", ", words, loss);
  }
  return text.empty() ? text : text + ")";
}

Error describe_exception(const std::exception& exception, const RunOptions& options) {
  const auto* error = dynamic_cast<const c10::Error*>(&exception);
  const std::string text = error ? brief(*error) : exception.what();
  if (dynamic_cast<const std::bad_alloc*>(&exception) || out_of_memory(text)) {
    return {Fault::data,
            fmt::format("out of memory on {} with batches of {}: {}", options.runtime.device, options.data.batch, text),
            "lower --batch; --precision bf16 needs less than fp32"};
  }
  return {Fault::data, fmt::format("LibTorch: {}", text), {}};
}

void NotePrinter::print(const DataSet& data) {
  for (const std::string& note : data.notes()) {
    if (printed_.insert(note).second) console_.notes << "note: " << note << '\n';
  }
}

}  // namespace ergometer::workload
