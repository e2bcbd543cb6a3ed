#include "core/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/text.hpp"

namespace ergometer::workload {

Result<CsvReader> CsvReader::open(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    const bool packed = std::filesystem::exists(path + ".xz", error);
    return Error{Fault::data, fmt::format("{}: no such file", path),
                 packed ? fmt::format("unpack it: xz -dk {}.xz", path) : std::string()};
  }
  if (status.type() == std::filesystem::file_type::directory) {
    return Error{Fault::data, fmt::format("{}: a folder, not a CSV file", path), {}};
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Error{Fault::data, fmt::format("{}: {}", path, std::generic_category().message(errno)), {}};
  }
  return CsvReader(path, std::move(file));
}

std::string CsvReader::where() const { return fmt::format("{}:{}", path_, line_); }

Result<bool> CsvReader::next(std::vector<std::string_view>& fields) {
  do {
    if (!std::getline(file_, text_)) {
      if (file_.bad()) return Error{Fault::data, fmt::format("{}: read error after line {}", path_, line_), {}};
      return false;
    }
    ++line_;
    if (line_ == 1 && text_.rfind("\xEF\xBB\xBF", 0) == 0) text_.erase(0, 3);
    if (!text_.empty() && text_.back() == '\r') text_.pop_back();
  } while (trim(text_).empty());
  if (text_.find('\0') != std::string::npos) {
    return Error{Fault::data, fmt::format("{}: a NUL byte: this is not a text file", where()), {}};
  }
  if (auto done = split(fields); !done) return done.error();
  if (columns_ == 0) columns_ = fields.size();
  if (fields.size() != columns_) {
    return Error{
        Fault::data, fmt::format("{}: {} fields where the header has {}", where(), fields.size(), columns_), {}};
  }
  return true;
}

Result<Done> CsvReader::split(std::vector<std::string_view>& fields) {
  fields.clear();
  std::size_t at = 0;
  while (true) {
    if (at < text_.size() && text_[at] == '"') {
      const std::size_t begin = at;
      std::size_t write = at;
      for (++at;; ++at) {
        if (at >= text_.size()) return Error{Fault::data, fmt::format("{}: a quote that does not end", where()), {}};
        if (text_[at] == '"') {
          if (at + 1 >= text_.size() || text_[at + 1] != '"') break;
          ++at;
        }
        text_[write++] = text_[at];
      }
      ++at;
      if (at < text_.size() && text_[at] != ',') {
        return Error{Fault::data, fmt::format("{}: text after a closing quote", where()), {}};
      }
      fields.emplace_back(text_.data() + begin, write - begin);
    } else {
      const std::size_t end = std::min(text_.find(',', at), text_.size());
      fields.emplace_back(text_.data() + at, end - at);
      at = end;
    }
    if (at >= text_.size()) return Done{};
    ++at;
  }
}

}  // namespace ergometer::workload
