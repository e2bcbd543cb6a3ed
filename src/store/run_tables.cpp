#include "store/run_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <span>

#include "base/csv.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

constexpr std::string_view kCut = "cut=true";

// `text` with a backslash before each character that separates attributes.
void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\\' || c == ';' || c == '=') out += '\\';
    out += c;
  }
}

// cut=true stands for a cut region; an attribute of that name is told apart by a backslash.
std::string attributes_text(const Region& region) {
  std::string out;
  if (region.cut) out += kCut;
  for (const auto& [key, value] : region.attributes) {
    if (!out.empty()) out += ';';
    if (key == "cut") out += '\\';
    append_escaped(out, key);
    out += '=';
    append_escaped(out, value);
  }
  return out;
}

void read_attributes(std::string_view text, Region& region) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::string key, value;
    bool in_value = false;
    std::size_t at = begin;
    for (; at < text.size() && text[at] != ';'; ++at) {
      if (text[at] == '=' && !in_value) {
        in_value = true;
        continue;
      }
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      (in_value ? value : key) += text[at];
    }
    if (text.substr(begin, at - begin) == kCut) {
      region.cut = true;
    } else if (!key.empty()) {
      std::erase_if(region.attributes, [&](const auto& other) { return other.first == key; });
      region.attributes.emplace_back(std::move(key), std::move(value));
    }
    begin = at + 1;
  }
}

// A row's fields by the caller's columns; "" for a column that the file lacks.
using Fields = std::span<const std::string_view>;

struct Wanted {
  std::string_view name;
  bool needed;
};

// Splits a record into views of `text` or, if it is quoted, of `copies`. False for a quote that never ends.
bool split_record(std::string_view text, std::size_t& at, std::vector<std::string>& copies,
                  std::vector<std::string_view>& fields) {
  fields.clear();
  const std::size_t end = std::min(text.find('\n', at), text.size());
  std::string_view line = text.substr(at, end - at);
  if (line.find('"') != std::string_view::npos) {
    auto record = read_csv_record(text, at);
    if (!record) {
      at = std::min(end + 1, text.size());
      return false;
    }
    copies = std::move(*record);
    fields.assign(copies.begin(), copies.end());
    return true;
  }
  at = std::min(end + 1, text.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return true;
    line.remove_prefix(comma + 1);
  }
}

void read_table(std::string_view text, std::span<const Wanted> wanted, const std::string& source,
                const std::function<bool(Fields)>& use, std::vector<Warning>& warnings) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<std::string> copies;
  std::vector<std::string_view> fields, chosen(wanted.size());
  std::vector<std::size_t> columns;
  std::size_t at = 0, line = 0, width = 0, bad = 0, first_bad = 0;
  while (at < text.size()) {
    const std::size_t begin = at;
    const std::size_t first_line = line + 1;
    const bool closed = split_record(text, at, copies, fields);
    line += static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                                text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    if (closed && fields.size() == 1 && fields[0].empty()) continue;
    if (columns.empty()) {
      width = fields.size();
      for (const auto& [name, needed] : wanted) {
        const auto found = std::find(fields.begin(), fields.end(), name);
        if (found == fields.end() && needed) {
          warnings.push_back({"table-damaged", fmt::format("{} has no column {}; it is left out", source, name),
                              "see docs/run-format.md for its header"});
          return;
        }
        columns.push_back(static_cast<std::size_t>(found - fields.begin()));
      }
      continue;
    }
    if (closed && fields.size() == width) {
      for (std::size_t i = 0; i < columns.size(); ++i)
        chosen[i] = columns[i] < width ? fields[columns[i]] : std::string_view{};
      if (use(chosen)) continue;
    }
    if (bad++ == 0) first_bad = first_line;
  }
  if (bad > 0)
    warnings.push_back({"rows-skipped",
                        fmt::format("{}:{}: not a row of this table; {} such row{} left out", source, first_bad, bad,
                                    bad == 1 ? "" : "s"),
                        "correct or remove the row"});
}

// A whole number, `missing` for an empty field; nullopt for anything else.
std::optional<int> small_int(std::string_view text, int missing) {
  if (trim(text).empty()) return missing;
  const auto value = parse_int(text);
  if (!value || *value < std::numeric_limits<int>::min() || *value > std::numeric_limits<int>::max())
    return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace

void append_region_line(std::string& out, const Region& region) {
  append_int(out, to_ns(region.begin));
  out += ',';
  append_int(out, to_ns(region.end));
  out += ',';
  append_int(out, region.pid);
  out += ',';
  append_int(out, region.tid);
  out += ',';
  if (region.rank >= 0) append_int(out, region.rank);
  out += ',';
  append_csv_field(out, region.path);
  out += ',';
  append_csv_field(out, attributes_text(region));
  out += '\n';
}

void append_event_line(std::string& out, const Event& event) {
  append_int(out, to_ns(event.t));
  for (const std::string* field : {&event.source, &event.kind, &event.detail}) {
    out += ',';
    append_csv_field(out, *field);
  }
  out += '\n';
}

std::vector<Region> parse_regions(std::string_view text, const std::string& source, std::vector<Warning>& warnings) {
  static constexpr std::array wanted{Wanted{"t_begin_ns", true}, Wanted{"t_end_ns", true}, Wanted{"pid", false},
                                     Wanted{"tid", false},       Wanted{"rank", false},    Wanted{"path", true},
                                     Wanted{"attributes", false}};
  std::vector<Region> out;
  const auto use = [&out](Fields f) {
    const auto begin = parse_int(f[0]), end = parse_int(f[1]);
    const auto pid = small_int(f[2], 0), tid = small_int(f[3], 0), rank = small_int(f[4], -1);
    if (!begin || !end || *end < *begin || !pid || !tid || !rank || f[5].empty()) return false;
    Region region;
    region.begin = mono_ns(*begin);
    region.end = mono_ns(*end);
    region.pid = *pid;
    region.tid = *tid;
    region.rank = *rank;
    region.path = f[5];
    read_attributes(f[6], region);
    out.push_back(std::move(region));
    return true;
  };
  read_table(text, wanted, source, use, warnings);
  return out;
}

std::vector<Event> parse_events(std::string_view text, const std::string& source, std::vector<Warning>& warnings) {
  static constexpr std::array wanted{Wanted{"t_ns", true}, Wanted{"source", false}, Wanted{"kind", true},
                                     Wanted{"detail", false}};
  std::vector<Event> out;
  const auto use = [&out](Fields f) {
    const auto t = parse_int(f[0]);
    if (!t || f[2].empty()) return false;
    out.push_back({mono_ns(*t), std::string(f[1]), std::string(f[2]), std::string(f[3])});
    return true;
  };
  read_table(text, wanted, source, use, warnings);
  return out;
}

}  // namespace ergometer
