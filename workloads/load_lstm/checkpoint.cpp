#include "load_lstm/checkpoint.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/runtime.hpp"

namespace ergometer::workload::load_lstm {
namespace {

Error damaged(const std::string& path, const std::string& why) {
  return {Fault::data, fmt::format("{}: not a checkpoint of load_lstm: {}", path, why),
          "write one with: ergometer-workload train load_lstm --checkpoint FILE"};
}

std::string temporary(const std::string& path) { return path + ".part"; }

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

Result<Done> save_checkpoint(const std::string& path, const Network& network, const std::vector<Scale>& scales) {
  std::string cities;
  torch::Tensor table = torch::empty({static_cast<std::int64_t>(scales.size()), 3}, torch::kFloat64);
  double* cell = table.data_ptr<double>();
  for (const Scale& scale : scales) {
    cities += scale.city + "\n";
    *cell++ = scale.minimum;
    *cell++ = scale.maximum;
    *cell++ = scale.mean;
  }
  try {
    torch::serialize::OutputArchive archive;
    network->save(archive);
    archive.write("workload", c10::IValue(std::string("load_lstm")));
    archive.write("cities", c10::IValue(cities));
    archive.write("scales", table, /*is_buffer=*/true);
    archive.save_to(temporary(path));
  } catch (const c10::Error& error) {
    return Error{Fault::data, fmt::format("{}: cannot be written: {}", path, brief(error)), {}};
  }
  std::error_code error;
  std::filesystem::rename(temporary(path), path, error);
  if (error) return Error{Fault::data, fmt::format("{}: {}", path, error.message()), {}};
  return Done{};
}

Result<Checkpoint> load_checkpoint(const std::string& path) {
  errno = 0;
  if (!std::ifstream(path, std::ios::binary)) {
    return Error{Fault::data, fmt::format("{}: {}", path, std::generic_category().message(errno)),
                 "write one with: ergometer-workload train load_lstm --checkpoint FILE"};
  }
  Checkpoint checkpoint;
  torch::Tensor table;
  std::string cities;
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(path, torch::Device(torch::kCPU));
    c10::IValue workload;
    archive.read("workload", workload);
    if (!workload.isString() || workload.toStringRef() != "load_lstm") return damaged(path, "another workload's");
    c10::IValue names;
    archive.read("cities", names);
    cities = names.toStringRef();
    archive.read("scales", table, /*is_buffer=*/true);
    checkpoint.network->load(archive);
  } catch (const std::exception& error) {
    const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
    return damaged(path, torch_error ? brief(*torch_error) : error.what());
  }
  if (table.dim() != 2 || table.size(1) != 3 || table.scalar_type() != torch::kFloat64) {
    return damaged(path, "its scales have another form");
  }
  table = table.contiguous();
  const double* cell = table.data_ptr<double>();
  for (std::size_t begin = 0; begin < cities.size();) {
    const std::size_t end = std::min(cities.find('\n', begin), cities.size());
    if (static_cast<std::int64_t>(checkpoint.scales.size()) == table.size(0))
      return damaged(path, "more cities than scales");
    checkpoint.scales.push_back({cities.substr(begin, end - begin), cell[0], cell[1], cell[2]});
    cell += 3;
    begin = end + 1;
  }
  return checkpoint;
}

}  // namespace ergometer::workload::load_lstm
