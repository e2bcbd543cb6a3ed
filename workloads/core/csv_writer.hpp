// A CSV file that is being written: predictions of the applications. What cannot be written is an error with the path.
#pragma once

#include <fstream>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace ergometer::workload {

// A field of a CSV file, in quotes where it needs them.
[[nodiscard]] std::string csv_field(std::string_view text);

class CsvWriter {
 public:
  // Replaces a file that is there.
  [[nodiscard]] static Result<CsvWriter> create(const std::string& path, std::string_view header);

  // Whole lines, with their ends. A full disk may show only later or in close().
  [[nodiscard]] Result<Done> write(std::string_view lines);
  [[nodiscard]] Result<Done> close();

 private:
  CsvWriter(std::string path, std::ofstream file) : path_(std::move(path)), file_(std::move(file)) {}
  Result<Done> state() const;

  std::string path_;
  std::ofstream file_;
};

}  // namespace ergometer::workload
