// KernelFile: a small file of /sys or /proc that a sensor reads again and again; NumberFile: one with a single integer
// whose loss and return become events (ReadState). Used by the backends that read kernel files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "device/sensor.hpp"

namespace ergometer {

// Kept open and read from its start each time. A file that was removed or replaced since is opened anew, so that the
// last value of a device that is gone is never repeated. Not thread-safe.
class KernelFile {
 public:
  // A sysfs attribute fits `max_bytes` = one page and is read by exactly one call (each call asks the device). Larger
  // files are read in pieces up to `max_bytes`.
  static constexpr std::size_t kPage = 4096;
  explicit KernelFile(std::filesystem::path path, std::size_t max_bytes = kPage);
  ~KernelFile();
  KernelFile(KernelFile&& other) noexcept;
  KernelFile& operator=(KernelFile&&) = delete;

  // Content now; the view lives until the next read. Errors as base's read_file; empty or larger content is `corrupt`.
  [[nodiscard]] Result<std::string_view> read();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  [[nodiscard]] Result<std::string_view> read_open_file();
  void close();

  std::filesystem::path path_;
  std::size_t max_bytes_;
  int fd_ = -1;
  std::string buffer_;
};

// Whether something can be read, told as events when that changes: "rejected" for content that makes no sense, else
// "lost"; "back" when it can be read again.
class ReadState {
 public:
  // `label` names the thing in events.
  explicit ReadState(std::string label) : label_(std::move(label)) {}
  void good(Readings& out);
  void bad(Readings& out, Error error);
  // What the last failed read said; null after a good one.
  [[nodiscard]] const Error* error() const { return error_ ? &*error_ : nullptr; }

 private:
  std::string label_;
  std::optional<Error> error_;
};

// One whole number, possibly negative.
class NumberFile {
 public:
  NumberFile(std::filesystem::path path, std::string label) : file_(std::move(path)), state_(std::move(label)) {}
  // The number, for a first look: no events.
  [[nodiscard]] Result<std::int64_t> probe();
  // Missing with an event where that is new.
  [[nodiscard]] std::optional<std::int64_t> read(Readings& out);
  [[nodiscard]] const Error* error() const { return state_.error(); }

 private:
  KernelFile file_;
  ReadState state_;
};

}  // namespace ergometer
