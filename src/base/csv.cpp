#include "base/csv.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ergometer {

void append_csv_field(std::string& out, std::string_view field) {
  if (field.find_first_of(",\"\n\r") == std::string_view::npos) {
    out += field;
    return;
  }
  out += '"';
  for (const char c : field) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string out;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i) out += ',';
    append_csv_field(out, fields[i]);
  }
  out += '\n';
  return out;
}

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto it = std::find(header.begin(), header.end(), name);
  if (it == header.end()) return std::nullopt;
  return static_cast<std::size_t>(it - header.begin());
}

std::optional<std::vector<std::string>> read_csv_record(std::string_view text, std::size_t& pos) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  while (pos < text.size()) {
    const char c = text[pos++];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (pos < text.size() && text[pos] == '"') {
        fields.back() += '"';
        ++pos;
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      return fields;
    } else if (c == '\r' && (pos == text.size() || text[pos] == '\n')) {
      continue;
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return std::nullopt;
  return fields;
}

Result<CsvTable> parse_csv(std::string_view text, std::string_view source) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  CsvTable table;
  std::size_t pos = 0, line = 1;
  while (pos < text.size()) {
    const std::size_t begin = pos;
    auto record = read_csv_record(text, pos);
    const std::size_t first_line = line;
    line += static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                                text.begin() + static_cast<std::ptrdiff_t>(pos), '\n'));
    if (!record)
      return fail(ErrorCode::corrupt, fmt::format("{}:{}: a quoted field never ends", source, first_line),
                  "close the quote or remove it");
    if (record->size() == 1 && record->front().empty()) continue;
    if (table.header.empty()) {
      table.header = std::move(*record);
      continue;
    }
    if (record->size() != table.header.size())
      return fail(ErrorCode::corrupt,
                  fmt::format("{}:{}: {} fields where the header has {}", source, first_line, record->size(),
                              table.header.size()),
                  "give each row as many fields as the header; a missing value is an empty field");
    table.rows.push_back(std::move(*record));
    table.lines.push_back(first_line);
  }
  return table;
}

}  // namespace ergometer
