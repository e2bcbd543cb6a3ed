// A CSV file row by row, with line numbers for messages: quoted fields, CRLF and a byte-order mark are understood.
// Used by the data sets of the workloads.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace ergometer::workload {

class CsvReader {
 public:
  [[nodiscard]] static Result<CsvReader> open(const std::string& path);

  // The next row that is not blank, into `fields` (views that live until the next call); false at the end of the file.
  // A row of more or fewer fields than the first, an open quote or a NUL byte is an error with file and line.
  [[nodiscard]] Result<bool> next(std::vector<std::string_view>& fields);

  std::int64_t line() const { return line_; }
  // "PATH:LINE", of the last row.
  std::string where() const;

 private:
  CsvReader(std::string path, std::ifstream file) : path_(std::move(path)), file_(std::move(file)) {}
  Result<Done> split(std::vector<std::string_view>& fields);

  std::string path_;
  std::ifstream file_;
  std::string text_;  // the line; quoted fields are unquoted in place
  std::int64_t line_ = 0;
  std::size_t columns_ = 0;
};

}  // namespace ergometer::workload
