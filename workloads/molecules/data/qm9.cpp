#include "molecules/data/qm9.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <thread>
#include <unordered_set>

#include "core/text.hpp"
#include "molecules/data/sdf.hpp"
#include "molecules/data/xyz.hpp"

namespace ergometer::workload::molecules {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMostReaders = 16;  // threads; more gain nothing with files this small

// Files of the folder whose name ends so (letter case aside), sorted by name.
Result<std::vector<std::string>> files_with(const fs::path& folder, std::string_view ending) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (lower(entry->path().extension().string()) == ending) files.push_back(entry->path().string());
  }
  if (error) return Error{Fault::data, fmt::format("{}: {}", folder.string(), error.message()), {}};
  std::sort(files.begin(), files.end());
  return files;
}

// The number at the end of the file's name is the molecule's: lists of exclusions go by it.
Result<Molecule> read_numbered(const std::string& path) {
  auto molecule = read_xyz(path);
  if (!molecule) return molecule;
  const std::string stem = fs::path(path).stem().string();
  const auto number = parse_integer(std::string_view(stem).substr(stem.find_last_not_of("0123456789") + 1));
  if (!number || *number != molecule->number) {
    return Error{Fault::data,
                 fmt::format("{}:2: the molecule's number is {}, not the file name's", path, molecule->number),
                 "name the file dsgdb9nsd_NNNNNN.xyz"};
  }
  return molecule;
}

Result<Readings> read_xyz_files(const std::vector<std::string>& files, bool strict) {
  std::vector<std::optional<Result<Molecule>>> results(files.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) results[i].emplace(read_numbered(files[i]));
  };
  std::vector<std::thread> readers;
  const auto wanted =
      std::min<std::size_t>({std::max(1U, std::thread::hardware_concurrency()), kMostReaders, files.size() / 256 + 1});
  for (std::size_t i = 1; i < wanted; ++i) readers.emplace_back(work);
  work();
  for (std::thread& reader : readers) reader.join();

  Readings readings;
  readings.molecules.reserve(files.size());
  for (auto& result : results) {
    if (*result) {
      readings.molecules.push_back(std::move(**result));
    } else {
      if (strict) return result->error();
      if (readings.skipped++ == 0) readings.first_fault = result->error().message;
    }
  }
  return readings;
}

Error nothing_found(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) {
    return {Fault::data, fmt::format("{}: no such folder", folder.string()),
            "unpack QM9 there, or write a small one with: ergometer-workload data make schnet FOLDER"};
  }
  if (!fs::is_directory(folder, ignored)) return {Fault::data, fmt::format("{}: not a folder", folder.string()), {}};
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (name.find(".tar") != std::string::npos || name.find(".zip") != std::string::npos) {
      return {Fault::data, fmt::format("{}: neither .xyz nor .sdf files", folder.string()),
              fmt::format("unpack it: tar -xf {} (or unzip)", name)};
    }
  }
  return {Fault::data, fmt::format("{}: neither .xyz nor .sdf files", folder.string()),
          "the folder must hold dsgdb9nsd_NNNNNN.xyz files (or a folder xyz of them), or gdb9.sdf and gdb9.sdf.csv"};
}

Result<Readings> read_any(const fs::path& folder, bool strict) {
  for (const fs::path& place : {folder, folder / "xyz"}) {
    std::error_code ignored;
    if (!fs::is_directory(place, ignored)) continue;
    const auto files = files_with(place, ".xyz");
    if (!files) return files.error();
    if (!files->empty()) return read_xyz_files(*files, strict);
  }
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return nothing_found(folder);
  const auto files = files_with(folder, ".sdf");
  if (!files) return files.error();
  if (files->empty()) return nothing_found(folder);
  if (files->size() > 1) {
    return Error{Fault::data, fmt::format("{}: {} .sdf files", folder.string(), files->size()), "leave one there"};
  }
  return read_sdf(files->front(), strict);
}

// Lines of the list begin with the number; what begins otherwise is heading or footer.
Result<std::unordered_set<std::int64_t>> read_exclusions(const std::string& path) {
  std::unordered_set<std::int64_t> numbers;
  std::ifstream file(path, std::ios::binary);
  std::string line;
  while (std::getline(file, line)) {
    const std::string_view text = trim(line);
    const auto number = parse_integer(text.substr(0, text.find_first_of(" \t")));
    if (number && *number > 0) numbers.insert(*number);
  }
  if (file.bad()) return Error{Fault::data, fmt::format("{}: read error", path), {}};
  if (numbers.empty()) {
    return Error{Fault::data, fmt::format("{}: no line begins with a molecule's number", path),
                 "take QM9's own list, or remove the file to leave no molecule out"};
  }
  return numbers;
}

Result<Done> exclude(const fs::path& folder, Qm9& data) {
  std::error_code ignored;
  const std::string path = (folder / "uncharacterized.txt").string();
  if (!fs::exists(path, ignored)) {
    data.notes.push_back(fmt::format("{}: absent, so that no uncharacterised molecule is left out{}", path,
                                     fs::exists(path + ".xz", ignored) ? " (unpack it: xz -dk)" : ""));
    return Done{};
  }
  const auto numbers = read_exclusions(path);
  if (!numbers) return numbers.error();
  const std::size_t before = data.molecules.size();
  data.molecules.erase(std::remove_if(data.molecules.begin(), data.molecules.end(),
                                      [&](const Molecule& molecule) { return numbers->count(molecule.number) > 0; }),
                       data.molecules.end());
  data.notes.push_back(fmt::format("{} molecules read, {} excluded by uncharacterized.txt, {} kept", before,
                                   before - data.molecules.size(), data.molecules.size()));
  return Done{};
}

}  // namespace

Result<Qm9> read_qm9(const std::string& folder, bool strict) {
  auto readings = read_any(folder, strict);
  if (!readings) return readings.error();
  Qm9 data;
  data.molecules = std::move(readings->molecules);
  if (data.molecules.empty()) {
    return Error{Fault::data,
                 readings->skipped > 0 ? fmt::format("{}: no molecule could be read: {}", folder, readings->first_fault)
                                       : fmt::format("{}: no molecules", folder),
                 "unpack QM9 again"};
  }
  if (readings->skipped > 0) {
    data.notes.push_back(
        fmt::format("{} molecules with a fault are left out, the first: {}", readings->skipped, readings->first_fault));
  }
  if (readings->unmatched_rows > 0) {
    data.notes.push_back(
        fmt::format("{} rows of the CSV file have no molecule in the SDF file", readings->unmatched_rows));
  }
  std::sort(data.molecules.begin(), data.molecules.end(),
            [](const Molecule& a, const Molecule& b) { return a.number < b.number; });
  const auto twice = std::adjacent_find(data.molecules.begin(), data.molecules.end(),
                                        [](const Molecule& a, const Molecule& b) { return a.number == b.number; });
  if (twice != data.molecules.end()) {
    return Error{Fault::data, fmt::format("{}: molecule {} comes twice", folder, twice->number), "remove one of them"};
  }
  if (auto done = exclude(folder, data); !done) return done.error();
  if (data.molecules.empty()) {
    return Error{Fault::data, fmt::format("{}: every molecule is excluded by uncharacterized.txt", folder),
                 "remove the list, or add molecules"};
  }
  return data;
}

}  // namespace ergometer::workload::molecules
