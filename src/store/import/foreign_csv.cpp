#include "store/import/foreign_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer::foreign {
namespace {

struct NamedFactor {
  std::string_view name;
  double factor;
};
constexpr std::array kPowerUnits{NamedFactor{"w", 1}, NamedFactor{"mw", 1e-3}, NamedFactor{"kw", 1e3},
                                 NamedFactor{"watts", 1}};
constexpr std::array kEnergyUnits{NamedFactor{"j", 1}, NamedFactor{"mj", 1e-3}, NamedFactor{"kj", 1e3},
                                  NamedFactor{"wh", 3600}, NamedFactor{"kwh", 3.6e6}};
constexpr std::array kRatioUnits{NamedFactor{"%", 0.01}, NamedFactor{"pct", 0.01}, NamedFactor{"percent", 0.01},
                                 NamedFactor{"1", 1}};
constexpr std::array kByteUnits{NamedFactor{"b", 1},       NamedFactor{"bytes", 1},     NamedFactor{"kib", 1024},
                                NamedFactor{"mib", 1 << 20}, NamedFactor{"gib", 1 << 30}, NamedFactor{"kb", 1e3},
                                NamedFactor{"mb", 1e6},    NamedFactor{"gb", 1e9}};
constexpr std::array kFrequencyUnits{NamedFactor{"hz", 1}, NamedFactor{"khz", 1e3}, NamedFactor{"mhz", 1e6},
                                     NamedFactor{"ghz", 1e9}};
constexpr std::array kTemperatureUnits{NamedFactor{"c", 1}, NamedFactor{"\xC2\xB0" "c", 1}};

template <class List>
std::optional<double> factor_in(const List& list, std::string_view unit) {
  for (const auto& entry : list)
    if (unit == entry.name) return entry.factor;
  return std::nullopt;
}

bool is_missing_word(std::string_view field) {
  static constexpr std::array words{"",           "n/a",  "na",  "nan",      "none", "null",         "-",
                                    "not supported", "unknown error", "not available", "gpu is lost", "err!",
                                    "insufficient permissions", "not active", "unknown"};
  const auto word = lower(field);
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The unit at the end of a name joined by '_': "memory_used_mib".
bool is_suffix_unit(std::string_view word) {
  static constexpr std::array words{"w", "mw", "kw", "pct", "percent", "mib", "gib", "kib", "mb", "gb", "mhz", "mj", "j"};
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

Result<ForeignCsv> ForeignCsv::open(std::string_view text, const std::string& source) {
  ForeignCsv out;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  out.text_ = text;
  std::size_t pos = 0;
  std::string_view first;
  while (pos < text.size()) {
    const std::size_t end = std::min(text.find('\n', pos), text.size());
    first = trim(text.substr(pos, end - pos));
    if (!first.empty() && first.front() != '#') break;
    first = {};
    pos = end + 1;
    ++out.line_;
  }
  if (first.empty())
    return fail(ErrorCode::corrupt, fmt::format("{} is empty", source), "expected is a CSV file with a header line");
  std::ptrdiff_t most = 0;
  for (const char c : {',', ';', '\t'})
    if (const auto count = std::count(first.begin(), first.end(), c); count > most) most = count, out.separator_ = c;
  out.pos_ = pos;
  std::vector<std::string_view> fields;
  out.record(fields);
  for (const auto field : fields) out.header_.emplace_back(field);
  out.body_ = out.pos_;
  out.body_line_ = out.line_;
  return out;
}

void ForeignCsv::rewind() {
  pos_ = body_;
  line_ = body_line_;
  left_out_ = first_left_out_ = 0;
}

bool ForeignCsv::record(std::vector<std::string_view>& fields) {
  fields.clear();
  unquoted_.clear();
  unquoted_.reserve(header_.size() + 64);  // views point into it
  record_line_ = line_;
  while (pos_ <= text_.size()) {
    while (pos_ < text_.size() && text_[pos_] == ' ') ++pos_;
    if (pos_ < text_.size() && text_[pos_] == '"' && unquoted_.size() < unquoted_.capacity()) {
      std::string& field = unquoted_.emplace_back();
      for (++pos_; pos_ < text_.size(); ++pos_) {
        if (text_[pos_] == '\n') ++line_;
        if (text_[pos_] != '"') {
          field += text_[pos_];
        } else if (pos_ + 1 < text_.size() && text_[pos_ + 1] == '"') {
          field += text_[pos_++];
        } else {
          ++pos_;
          break;
        }
      }
      fields.push_back(trim(field));
      while (pos_ < text_.size() && text_[pos_] != separator_ && text_[pos_] != '\n') ++pos_;
    } else {
      const std::size_t begin = pos_;
      while (pos_ < text_.size() && text_[pos_] != separator_ && text_[pos_] != '\n') ++pos_;
      fields.push_back(trim(text_.substr(begin, pos_ - begin)));
    }
    if (pos_ >= text_.size()) {
      ++pos_;
      return true;
    }
    if (text_[pos_++] == '\n') {
      ++line_;
      return true;
    }
  }
  return false;
}

bool ForeignCsv::next(std::vector<std::string_view>& fields) {
  while (pos_ < text_.size()) {
    record(fields);
    if (fields.size() == 1 && (fields[0].empty() || fields[0].front() == '#')) continue;
    if (fields.size() == header_.size()) return true;
    // A log that was started anew repeats its header; that is no damage.
    if (left_out_++ == 0) first_left_out_ = record_line_;
  }
  return false;
}

ColumnName column_name(std::string_view header) {
  ColumnName out;
  std::string_view name = trim(header);
  for (const auto& [open, close] : {std::pair{'[', ']'}, std::pair{'(', ')'}}) {
    const auto at = name.find(open);
    if (at == std::string_view::npos || name.back() != close) continue;
    out.unit = std::string(trim(name.substr(at + 1, name.size() - at - 2)));
    name = trim(name.substr(0, at));
    break;
  }
  for (const char c : lower(name)) out.name += c == '.' || c == ' ' || c == '-' || c == '/' ? '_' : c;
  const auto at = out.name.rfind('_');
  if (out.unit.empty() && at != std::string::npos && is_suffix_unit(std::string_view(out.name).substr(at + 1))) {
    out.unit = out.name.substr(at + 1);
    out.name.resize(at);
  }
  return out;
}

std::optional<double> unit_factor(std::string_view unit, UnitKind kind) {
  const auto word = lower(trim(unit));
  switch (kind) {
    case UnitKind::power: return factor_in(kPowerUnits, word);
    case UnitKind::energy: return factor_in(kEnergyUnits, word);
    case UnitKind::ratio: return factor_in(kRatioUnits, word);
    case UnitKind::bytes: return factor_in(kByteUnits, word);
    case UnitKind::frequency: return factor_in(kFrequencyUnits, word);
    case UnitKind::temperature: return factor_in(kTemperatureUnits, word);
    case UnitKind::plain: return word.empty() ? std::optional(1.0) : std::nullopt;
  }
  return std::nullopt;
}

ForeignNumber foreign_number(std::string_view field, std::string_view unit, UnitKind kind, bool decimal_comma) {
  std::string_view text = trim(field);
  if (text.size() > 1 && text.front() == '[' && text.back() == ']') text = trim(text.substr(1, text.size() - 2));
  if (is_missing_word(text)) return {};
  std::size_t digits = 0;
  while (digits < text.size() && (is_digit(text[digits]) || std::string_view("+-.,eE").find(text[digits]) !=
                                                                std::string_view::npos))
    ++digits;
  std::string number(text.substr(0, digits));
  if (decimal_comma) std::replace(number.begin(), number.end(), ',', '.');
  const auto value = parse_double(number);
  const auto rest = trim(text.substr(digits));
  const auto factor = unit_factor(rest.empty() ? unit : rest, kind);
  if (!value || !factor) return {std::nullopt, false};
  return {*value * *factor, true};
}

}  // namespace ergometer::foreign
