#include "engine/checkpoint.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/runtime.hpp"

namespace ergometer::workload {
namespace {

using Dictionary = c10::impl::GenericDict;

constexpr std::int64_t kFormat = 1;

Error write_hint(std::string message, std::string_view workload) {
  return {Fault::data, std::move(message),
          fmt::format("write one with: ergometer-workload train {} --checkpoint FILE", workload)};
}

Error damaged(const std::string& path, std::string_view workload, std::string_view why) {
  return write_hint(fmt::format("{}: not a checkpoint of {}: {}", path, workload, why), workload);
}

std::string temporary(const std::string& path) { return path + ".part"; }

Dictionary dictionary() { return Dictionary(c10::StringType::get(), c10::AnyType::get()); }

Dictionary to_dictionary(const NamedTensors& tensors) {
  Dictionary result = dictionary();
  for (const auto& [name, tensor] : tensors) result.insert(name, tensor.detach().to(torch::kCPU).contiguous());
  return result;
}

NamedTensors to_tensors(const c10::IValue& value) {
  NamedTensors tensors;
  for (const auto& entry : value.toGenericDict()) {
    tensors.emplace_back(entry.key().toStringRef(), entry.value().toTensor());
  }
  return tensors;
}

Checkpoint from_dictionary(const Dictionary& file) {
  Checkpoint checkpoint;
  checkpoint.workload = file.at("workload").toStringRef();
  checkpoint.epoch = file.at("epoch").toInt();
  checkpoint.state = file.at("state").toStringRef();
  for (const auto& entry : file.at("settings").toGenericDict()) {
    checkpoint.settings.emplace_back(entry.key().toStringRef(), entry.value().toStringRef());
  }
  checkpoint.network = to_tensors(file.at("network"));
  checkpoint.optimiser = to_tensors(file.at("optimiser"));
  checkpoint.scaler = to_tensors(file.at("scaler"));
  return checkpoint;
}

Result<Done> write_file(const std::string& path, const std::vector<char>& bytes) {
  errno = 0;
  std::ofstream file(temporary(path), std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) {
    return Error{Fault::data, fmt::format("{}: {}", path, std::generic_category().message(errno)),
                 "the former checkpoint, if there was one, is still there"};
  }
  std::error_code error;
  std::filesystem::rename(temporary(path), path, error);
  if (error) return Error{Fault::data, fmt::format("{}: {}", path, error.message()), {}};
  return Done{};
}

}  // namespace

Result<Done> check_writable(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Error{Fault::data, fmt::format("{}: a folder, not a file", path), {}};
  }
  errno = 0;
  if (!std::ofstream(temporary(path), std::ios::binary | std::ios::trunc)) {
    return Error{Fault::data, fmt::format("{}: {}", path, std::generic_category().message(errno)),
                 "the folder must exist and be writable"};
  }
  std::filesystem::remove(temporary(path), ignored);
  return Done{};
}

Result<Done> save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  std::vector<char> bytes;
  try {
    Dictionary settings = dictionary();
    for (const auto& [name, value] : checkpoint.settings) settings.insert(name, value);
    Dictionary file = dictionary();
    file.insert("format", kFormat);
    file.insert("workload", checkpoint.workload);
    file.insert("epoch", checkpoint.epoch);
    file.insert("state", checkpoint.state);
    file.insert("settings", settings);
    file.insert("network", to_dictionary(checkpoint.network));
    file.insert("optimiser", to_dictionary(checkpoint.optimiser));
    file.insert("scaler", to_dictionary(checkpoint.scaler));
    bytes = torch::pickle_save(file);
  } catch (const c10::Error& error) {
    return Error{Fault::data, fmt::format("{}: cannot be written: {}", path, brief(error)), {}};
  }
  return write_file(path, bytes);
}

Result<Checkpoint> load_checkpoint(const std::string& path, std::string_view workload) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return write_hint(fmt::format("{}: {}", path, std::generic_category().message(errno)), workload);
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  Checkpoint checkpoint;
  try {
    const Dictionary content = torch::pickle_load(bytes).toGenericDict();
    if (content.at("format").toInt() != kFormat) return damaged(path, workload, "another version's format");
    checkpoint = from_dictionary(content);
  } catch (const c10::Error& error) {
    return damaged(path, workload, brief(error));
  } catch (const std::exception& error) {
    return damaged(path, workload, error.what());
  }
  if (checkpoint.workload != workload) return damaged(path, workload, "it is one of " + checkpoint.workload);
  return checkpoint;
}

Result<Done> restore_network(const std::string& path, const Checkpoint& checkpoint, const torch::nn::Module& network) {
  const auto copied = copy_by_name(checkpoint.network, named_tensors(network));
  if (copied) return Done{};
  return Error{Fault::data, fmt::format("{}: does not fit the network: {}", path, copied.error().message),
               "--image-size and --sequence must be those of the training"};
}

}  // namespace ergometer::workload
