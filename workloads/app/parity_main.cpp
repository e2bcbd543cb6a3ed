// Compares a workload's network with a reference implementation: weights, inputs and results of the reference come from
// a file that tests/parity/*.py wrote. Not installed.
//   ergometer-workload-parity NAME IN.pt [OUT.pt] [--device cpu|cuda]
// OUT.pt gets our own output, loss and gradients. Exit code: 0 all within 1e-4, 1 not, 2 usage.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <tuple>

#include "app/registry.hpp"
#include "core/runtime.hpp"
#include "engine/session.hpp"
#include "engine/weights.hpp"
#include "steps/precision.hpp"

namespace ergometer::workload {
namespace {

using Dictionary = c10::impl::GenericDict;

constexpr double kTolerance = 1e-4;
// A gradient that is zero but for rounding (a bias before a normalisation) is held against the others' size.
constexpr double kSmallest = 1e-3;

struct Reference {
  NamedTensors weights;
  Batch batch;
  DataOptions options;
  torch::Tensor output;
  torch::Tensor loss;
  std::map<std::string, torch::Tensor> gradients;
};

struct Ours {
  torch::Tensor output;
  torch::Tensor loss;
  NamedTensors gradients;
};

NamedTensors tensors_of(const c10::IValue& value) {
  NamedTensors tensors;
  for (const auto& entry : value.toGenericDict()) {
    tensors.emplace_back(entry.key().toStringRef(), entry.value().toTensor());
  }
  return tensors;
}

std::int64_t option(const Dictionary& options, const std::string& name) {
  return options.contains(name) ? options.at(name).toInt() : 0;
}

// Throws what LibTorch throws.
Reference read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const Dictionary content = torch::pickle_load(bytes).toGenericDict();
  Reference reference;
  reference.weights = tensors_of(content.at("weights"));
  for (const c10::IValue& tensor : content.at("tensors").toListRef()) {
    reference.batch.tensors.push_back(tensor.toTensor());
  }
  reference.batch.samples = content.at("samples").toInt();
  reference.batch.tokens = content.at("tokens").toInt();
  const Dictionary options = content.at("options").toGenericDict();
  reference.options.folder = "synthetic";
  reference.options.image_size = option(options, "image_size");
  reference.options.sequence = option(options, "sequence");
  reference.options.batch = option(options, "batch");
  reference.output = content.at("output").toTensor();
  reference.loss = content.at("loss").toTensor();
  for (auto& [name, tensor] : tensors_of(content.at("gradients"))) reference.gradients.emplace(name, tensor);
  return reference;
}

// Our buffers that the reference lacks are constants; weights of the reference that repeat another one are tied to it.
Result<Done> load_weights(const Reference& reference, const torch::nn::Module& network) {
  std::map<std::string, torch::Tensor> given(reference.weights.begin(), reference.weights.end());
  NamedTensors from;
  NamedTensors to;
  for (const auto& parameter : network.named_parameters()) to.emplace_back(parameter.key(), parameter.value());
  for (const auto& buffer : network.named_buffers()) {
    if (given.count(buffer.key()) > 0) {
      to.emplace_back(buffer.key(), buffer.value());
    } else {
      fmt::print("  constant of ours: {}\n", buffer.key());
    }
  }
  const std::map<std::string, torch::Tensor> known(to.begin(), to.end());
  for (const auto& [name, tensor] : reference.weights) {
    const bool tied =
        known.count(name) == 0 && std::any_of(known.begin(), known.end(), [&, &weight = tensor](const auto& entry) {
          const auto twin = given.find(entry.first);
          return twin != given.end() && torch::equal(twin->second, weight);
        });
    if (tied) {
      fmt::print("  repeats another weight: {}\n", name);
    } else if (known.count(name) > 0 || name.find("num_batches_tracked") == std::string::npos) {
      from.emplace_back(name, tensor);
    }
  }
  return copy_by_name(from, to);
}

void switch_dropout_off(torch::nn::Module& network) {
  for (const auto& module : network.modules()) {
    if (auto* dropout = module->as<torch::nn::Dropout>()) dropout->options.p(0.0);
  }
}

// Output in fp32; loss and gradients in the number format of the reference's gradients.
Ours compute(Task& task, const Batch& batch, torch::ScalarType gradient_type) {
  Ours ours;
  task.network().eval();
  {
    const torch::NoGradGuard no_gradient;
    ours.output = task.predict(batch).to(torch::kCPU);
  }
  task.network().train();
  task.network().to(gradient_type);
  const torch::Tensor loss = task.loss(batch).loss;
  loss.backward();
  ours.loss = loss.detach().to(torch::kCPU);
  for (const auto& parameter : task.network().named_parameters()) {
    const torch::Tensor& gradient = parameter.value().grad();
    if (gradient.defined()) ours.gradients.emplace_back(parameter.key(), gradient.to(torch::kCPU));
  }
  return ours;
}

double largest(const torch::Tensor& tensor) { return tensor.numel() == 0 ? 0 : tensor.abs().max().item<double>(); }

// Whether it is near enough; prints a line.
bool compare(const std::string& what, const torch::Tensor& ours, const torch::Tensor& reference, double smallest = 0) {
  if (ours.sizes() != reference.sizes()) {
    fmt::print("  {:<10} has another size than the reference\n", what);
    return false;
  }
  const double absolute = largest(ours.to(torch::kFloat64) - reference.to(torch::kFloat64));
  const double relative = absolute / std::max({largest(reference), smallest, 1e-30});
  const bool near = relative <= kTolerance;  // false of NaN
  fmt::print("  {:<10} absolute {:.2e}, relative {:.2e}{}\n", what, absolute, relative, near ? "" : "  TOO FAR");
  return near;
}

bool compare_gradients(const Ours& ours, const Reference& reference) {
  double most = 0;
  for (const auto& [name, gradient] : reference.gradients) most = std::max(most, largest(gradient));
  bool near = true;
  std::size_t found = 0;
  std::string worst;
  double worst_relative = -1;
  double worst_absolute = 0;
  for (const auto& [name, gradient] : ours.gradients) {
    const auto expected = reference.gradients.find(name);
    if (expected == reference.gradients.end() || expected->second.sizes() != gradient.sizes()) {
      fmt::print("  gradient of {}: none of this size in the reference\n", name);
      near = false;
      continue;
    }
    ++found;
    const double absolute = largest(gradient.to(torch::kFloat64) - expected->second.to(torch::kFloat64));
    const double relative = absolute / std::max({largest(expected->second), kSmallest * most, 1e-30});
    if (!(relative <= worst_relative))
      std::tie(worst, worst_relative, worst_absolute) = std::make_tuple(name, relative, absolute);
    near = near && relative <= kTolerance;
  }
  if (found != reference.gradients.size()) {
    fmt::print("  {} gradients, the reference has {}\n", found, reference.gradients.size());
    near = false;
  }
  fmt::print("  {:<10} absolute {:.2e}, relative {:.2e}, the worst of {} ({}){}\n", "gradients", worst_absolute,
             worst_relative, found, worst, near ? "" : "  TOO FAR");
  return near;
}

void write(const std::string& path, const Ours& ours) {
  Dictionary gradients(c10::StringType::get(), c10::AnyType::get());
  for (const auto& [name, gradient] : ours.gradients) gradients.insert(name, gradient.contiguous());
  Dictionary content(c10::StringType::get(), c10::AnyType::get());
  content.insert("output", ours.output.contiguous());
  content.insert("loss", ours.loss);
  content.insert("gradients", gradients);
  const auto bytes = torch::pickle_save(content);
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

Result<bool> run(const Workload& workload, const std::string& in, const std::string& out, const std::string& device) {
  RunOptions options;
  options.runtime.device = device;
  const auto where = open_device(options);
  if (!where) return where.error();
  Reference reference = read(in);
  const auto task = workload.make_task(reference.options);
  fmt::print("{} on {}\n", workload.name, describe(options, *where));
  if (auto loaded = load_weights(reference, task->network()); !loaded) {
    return Error{Fault::data, fmt::format("{}: {}", in, loaded.error().message), {}};
  }
  switch_dropout_off(task->network());
  place(task->network(), workload, *where);
  for (torch::Tensor& tensor : reference.batch.tensors) tensor = tensor.to(*where);
  const Ours ours = compute(*task, reference.batch, reference.gradients.begin()->second.scalar_type());
  if (!out.empty()) write(out, ours);
  const bool output = compare("output", ours.output, reference.output);
  const bool loss = compare("loss", ours.loss, reference.loss);
  return compare_gradients(ours, reference) && output && loss;
}

int report(const Error& error) {
  fmt::print(stderr, "ergometer-workload-parity: {}\n", error.message);
  return error.fault == Fault::usage ? 2 : 1;
}

int parity(int argc, char** argv) {
  std::string name;
  std::string in;
  std::string out;
  std::string device = "cpu";
  CLI::App app("Compares a network with its reference implementation", "ergometer-workload-parity");
  app.add_option("name", name, "the workload")->required();
  app.add_option("in", in, "written by tests/parity/*.py")->required()->check(CLI::ExistingFile);
  app.add_option("out", out, "our own results");
  app.add_option("--device", device)->check(CLI::IsMember({"cpu", "cuda"}))->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto workload = find_workload(name);
  if (!workload) return report(workload.error());
  const auto near = run(**workload, in, out, device);
  if (!near) return report(near.error());
  return *near ? 0 : 1;
}

}  // namespace
}  // namespace ergometer::workload

int main(int argc, char** argv) {
  try {
    return ergometer::workload::parity(argc, argv);
  } catch (const std::exception& error) {  // LibTorch's, of a file in another form
    const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
    fmt::print(stderr, "ergometer-workload-parity: {}\n",
               torch_error ? ergometer::workload::brief(*torch_error) : std::string(error.what()));
    return 1;
  }
}
