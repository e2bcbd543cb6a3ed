#include "molecules/data/xyz.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <system_error>
#include <vector>

#include "core/text.hpp"

namespace ergometer::workload::molecules {
namespace {

constexpr std::int64_t kMostAtoms = 1000;  // more is no molecule but a damaged file
constexpr std::size_t kProperties = 15;    // A B C mu alpha homo lumo gap r2 zpve U0 U H G Cv
constexpr std::size_t kU0 = 10;

// Line by line, with the number of the last line.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  std::optional<std::string_view> next() {
    if (rest_.empty()) return std::nullopt;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    return line;
  }
  std::int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

void split(std::string_view line, std::vector<std::string_view>& fields) {
  constexpr std::string_view kBlanks = " \t\r";
  fields.clear();
  for (std::size_t begin = line.find_first_not_of(kBlanks); begin != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kBlanks, end);
  }
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : lines_(text), path_(path) {}

  Result<Molecule> run() {
    const auto atoms = parse_count();
    if (!atoms) return atoms.error();
    if (auto done = parse_properties(); !done) return done.error();
    for (std::int64_t i = 0; i < *atoms; ++i) {
      if (auto done = parse_atom(i, *atoms); !done) return done.error();
    }
    if (atoms_coincide(molecule_)) return fault("two atoms are in the same place");
    if (const auto line = lines_.next()) {
      split(*line, fields_);
      if (!fields_.empty() && !parse_qm9_number(fields_[0])) {
        return fault(fmt::format("line 1 says {} atoms, but here is '{}' in place of the frequencies", *atoms, *line));
      }
    }
    return std::move(molecule_);
  }

 private:
  Error fault(const std::string& what) const {
    return {Fault::data, fmt::format("{}:{}: {}", path_, lines_.number(), what),
            "leave the file out, or unpack it again from QM9 (figshare 978904)"};
  }

  Result<std::int64_t> parse_count() {
    const auto line = lines_.next();
    if (!line) return Error{Fault::data, fmt::format("{}: the file is empty", path_), "unpack it again from QM9"};
    const auto atoms = parse_integer(*line);
    if (!atoms) return fault(fmt::format("'{}' is not a number of atoms", trim(*line)));
    if (*atoms < 1 || *atoms > kMostAtoms) return fault(fmt::format("{} atoms (1 to {} can be)", *atoms, kMostAtoms));
    return *atoms;
  }

  Result<Done> parse_properties() {
    const auto line = lines_.next();
    if (!line) return fault("the file ends before the properties");
    split(*line, fields_);
    if (fields_.size() != 2 + kProperties) {
      return fault(fmt::format("{} fields where 'gdb', a number and 15 properties are expected", fields_.size()));
    }
    const auto number = parse_integer(fields_[1]);
    if (!number || *number < 1) return fault(fmt::format("'{}' is not the number of a molecule", fields_[1]));
    molecule_.number = *number;
    for (std::size_t i = 0; i < kProperties; ++i) {
      const auto value = parse_qm9_number(fields_[2 + i]);
      if (!value) return fault(fmt::format("'{}' is not a number", fields_[2 + i]));
      if (i == kU0) molecule_.u0 = *value;
    }
    return Done{};
  }

  Result<Done> parse_atom(std::int64_t atom, std::int64_t atoms) {
    const auto line = lines_.next();
    if (!line) return fault(fmt::format("the file ends after {} of {} atoms", atom, atoms));
    split(*line, fields_);
    if (fields_.size() != 5) {
      return fault(fmt::format("atom {} of {}: {} fields where symbol, x, y, z and charge are expected", atom + 1,
                               atoms, fields_.size()));
    }
    const std::uint8_t element = atomic_number(fields_[0]);
    if (element == 0) return fault(fmt::format("unknown element '{}' (QM9 has H, C, N, O, F)", fields_[0]));
    molecule_.elements.push_back(element);
    for (std::size_t i = 1; i < 5; ++i) {
      const auto value = parse_qm9_number(fields_[i]);
      if (!value) return fault(fmt::format("'{}' is not a number", fields_[i]));
      if (i < 4) molecule_.positions.push_back(static_cast<float>(*value));
    }
    return Done{};
  }

  Lines lines_;
  const std::string& path_;
  std::vector<std::string_view> fields_;
  Molecule molecule_;
};

}  // namespace

std::optional<double> parse_qm9_number(std::string_view text) {
  const std::size_t at = text.find("*^");
  if (at == std::string_view::npos) return parse_number(text);
  return parse_number(std::string(text.substr(0, at)) + 'e' + std::string(text.substr(at + 2)));
}

Result<Molecule> parse_xyz(std::string_view text, const std::string& path) { return Parser(text, path).run(); }

Result<Molecule> read_xyz(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Fault::data, fmt::format("{}: {}", path, std::generic_category().message(errno)), {}};
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return Error{Fault::data, fmt::format("{}: read error", path), {}};
  return parse_xyz(text, path);
}

}  // namespace ergometer::workload::molecules
