#include "core/csv_writer.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace ergometer::workload {

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

Result<CsvWriter> CsvWriter::create(const std::string& path, std::string_view header) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) {
    return Error{Fault::data, fmt::format("{}: cannot be written: {}", path, std::generic_category().message(errno)),
                 "does its folder exist?"};
  }
  file << header << '\n';
  return CsvWriter(path, std::move(file));
}

Result<Done> CsvWriter::write(std::string_view lines) {
  file_.write(lines.data(), static_cast<std::streamsize>(lines.size()));
  return state();
}

Result<Done> CsvWriter::close() {
  file_.close();
  return state();
}

Result<Done> CsvWriter::state() const {
  if (file_) return Done{};
  return Error{Fault::data, fmt::format("{}: could not be written", path_), "is the disk full?"};
}

}  // namespace ergometer::workload
