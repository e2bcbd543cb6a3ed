// CSV as the project writes and reads it (RFC 4180 quoting, '\n' or "\r\n" line ends, UTF-8). An empty field is a
// missing value. For the sample files the store has a faster reader of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ergometer {

// Appends `field`, quoted if it holds a comma, quote or line end.
void append_csv_field(std::string& out, std::string_view field);
// One record with its line end.
[[nodiscard]] std::string csv_line(const std::vector<std::string>& fields);

struct CsvTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;   // each as long as the header
  std::vector<std::size_t> lines;               // line number (from 1) of each row, for messages
  // Index of a column, or nullopt.
  [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;
};

// Splits one record starting at `pos`; advances `pos` past its line end. nullopt for a quote that never closes.
[[nodiscard]] std::optional<std::vector<std::string>> read_csv_record(std::string_view text, std::size_t& pos);

// Whole table with a header row. Blank lines are skipped, a leading UTF-8 byte order mark too. A row of another
// length than the header is an error that names `source` and the line.
[[nodiscard]] Result<CsvTable> parse_csv(std::string_view text, std::string_view source);

}  // namespace ergometer
