#include "molecules/data/sdf.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <system_error>
#include <unordered_map>

#include "core/csv.hpp"
#include "core/text.hpp"

namespace ergometer::workload::molecules {
namespace {

using Energies = std::unordered_map<std::string, double>;  // hartree, by mol_id

std::size_t column(const std::vector<std::string_view>& header, std::string_view name) {
  std::size_t i = 0;
  while (i < header.size() && lower(trim(header[i])) != name) ++i;
  return i;
}

Result<Energies> read_energies(const std::string& path) {
  auto reader = CsvReader::open(path);
  if (!reader) return reader.error();
  std::vector<std::string_view> fields;
  auto more = reader->next(fields);
  if (!more) return more.error();
  if (!*more) return Error{Fault::data, fmt::format("{}: the file is empty", path), {}};
  const std::size_t id = column(fields, "mol_id");
  const std::size_t u0 = column(fields, "u0");
  if (id == fields.size() || u0 == fields.size()) {
    return Error{Fault::data, fmt::format("{}: no column {}", reader->where(), id == fields.size() ? "mol_id" : "u0"),
                 "the header must name mol_id and u0 (hartree), as MoleculeNet's gdb9.sdf.csv does"};
  }
  Energies energies;
  while (true) {
    more = reader->next(fields);
    if (!more) return more.error();
    if (!*more) return energies;
    const auto energy = parse_number(fields[u0]);
    if (!energy) {
      return Error{Fault::data, fmt::format("{}: u0 '{}' is not a number", reader->where(), fields[u0]), {}};
    }
    if (!energies.emplace(std::string(trim(fields[id])), *energy).second) {
      return Error{Fault::data, fmt::format("{}: {} comes twice", reader->where(), fields[id]),
                   "remove one of the rows"};
    }
  }
}

// Blocks of the file one by one. Positions and symbols are read by column, as the V2000 format defines them.
class SdfReader {
 public:
  SdfReader(const std::string& path, std::ifstream& file) : path_(path), file_(file) {}

  // The next block; its fault, after which reading can go on at the next block; nothing at the end of the file.
  std::optional<Result<Molecule>> next(std::string& title) {
    do {
      if (!line()) return std::nullopt;
    } while (trim(text_).empty());
    title = std::string(trim(text_));
    auto molecule = block(title);
    while (trim(text_) != "$$$$") {
      if (!line()) {
        ended_ = true;
        return std::make_optional<Result<Molecule>>(fault(fmt::format("the file ends within the block of {}", title)));
      }
    }
    return molecule;
  }
  bool ended_early() const { return ended_; }
  std::string where() const { return fmt::format("{}:{}", path_, number_); }

 private:
  bool line() {
    if (!std::getline(file_, text_)) return false;
    ++number_;
    return true;
  }
  // "$$$$" before its time must not be read over.
  bool inner_line() { return trim(text_) != "$$$$" && line() && trim(text_) != "$$$$"; }

  Error fault(const std::string& what) const {
    return {Fault::data, fmt::format("{}: {}", where(), what), "unpack the file again, or leave the block out"};
  }
  std::string_view columns(std::size_t first, std::size_t count) const {
    return first < text_.size() ? trim(std::string_view(text_).substr(first, count)) : std::string_view();
  }

  Result<Molecule> block(const std::string& title) {
    Molecule molecule;
    const auto number = parse_integer(std::string_view(title).substr(title.find_last_not_of("0123456789") + 1));
    if (!number || *number < 1) return fault(fmt::format("the title '{}' does not end in a number", title));
    molecule.number = *number;
    for (int i = 0; i < 3; ++i) {
      if (!inner_line()) return fault("the block ends before its counts");
    }
    const auto atoms = parse_integer(columns(0, 3));
    if (!atoms || text_.find("V2000") == std::string::npos) return fault("not the counts line of a V2000 block");
    if (*atoms < 1) return fault(fmt::format("{} has no atoms", title));
    for (std::int64_t i = 0; i < *atoms; ++i) {
      if (!inner_line()) return fault(fmt::format("{} ends after {} of {} atoms", title, i, *atoms));
      const std::uint8_t element = atomic_number(columns(31, 3));
      if (element == 0) {
        return fault(fmt::format("unknown element '{}' in atom {} of {} (QM9 has H, C, N, O, F)", columns(31, 3), i + 1,
                                 *atoms));
      }
      molecule.elements.push_back(element);
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const auto value = parse_number(columns(10 * axis, 10));
        if (!value) return fault(fmt::format("'{}' is not a number", columns(10 * axis, 10)));
        molecule.positions.push_back(static_cast<float>(*value));
      }
    }
    if (atoms_coincide(molecule)) return fault(fmt::format("{} has two atoms in the same place", title));
    return molecule;
  }

  const std::string& path_;
  std::ifstream& file_;
  std::string text_;
  std::int64_t number_ = 0;
  bool ended_ = false;
};

}  // namespace

Result<Readings> read_sdf(const std::string& path, bool strict) {
  auto energies = read_energies(path + ".csv");
  if (!energies) return energies.error();
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Fault::data, fmt::format("{}: {}", path, std::generic_category().message(errno)), {}};
  SdfReader reader(path, file);
  Readings readings;
  std::string title;
  while (auto molecule = reader.next(title)) {
    const auto energy = energies->find(title);
    Error error;
    if (!*molecule) {
      error = molecule->error();
      if (reader.ended_early()) return error;
    } else if (energy == energies->end()) {
      error = {Fault::data, fmt::format("{}: {} has no row in {}.csv", reader.where(), title, path),
               "the two files must be of one download"};
    } else {
      (*molecule)->u0 = energy->second;
      readings.molecules.push_back(std::move(**molecule));
      energies->erase(energy);
      continue;
    }
    if (energy != energies->end()) energies->erase(energy);
    if (strict) return error;
    if (readings.skipped++ == 0) readings.first_fault = error.message;
  }
  if (file.bad()) return Error{Fault::data, fmt::format("{}: read error", path), {}};
  readings.unmatched_rows = static_cast<std::int64_t>(energies->size());
  if (strict && readings.unmatched_rows > 0) {
    return Error{Fault::data, fmt::format("{}.csv: {} rows have no block in {}", path, readings.unmatched_rows, path),
                 "the two files must be of one download"};
  }
  return readings;
}

}  // namespace ergometer::workload::molecules
