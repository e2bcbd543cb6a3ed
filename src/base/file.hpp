// Files of the real world: small reads with a size bound, atomic writes, and the host root, a prefix for /sys, /proc
// and /dev that tests and containers replace. No function here follows user input outside the path it is given.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ergometer {

// A system file prefix: HostRoot("/x").path("/sys/class") is /x/sys/class; the default is the machine itself.
class HostRoot {
 public:
  HostRoot() = default;
  explicit HostRoot(std::filesystem::path prefix) : prefix_(std::move(prefix)) {}
  [[nodiscard]] std::filesystem::path path(std::string_view absolute) const;
  [[nodiscard]] bool is_real() const { return prefix_.empty() || prefix_ == "/"; }

 private:
  std::filesystem::path prefix_;
};

// Whole file. More than `max_bytes` is an error (corrupt), so that a sensor file can never eat the memory.
// Errors carry errno's text: not_found, permission_denied, lost (ENODEV, ENXIO), unavailable (EAGAIN, EBUSY), io.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes = 1 << 20);
// read_file of a short attribute, trimmed; "" where it cannot be read. short_text: at most 128 characters of its first
// line, for names that a device gives itself.
[[nodiscard]] std::string trimmed_text(const std::filesystem::path& path);
[[nodiscard]] std::string short_text(const std::filesystem::path& path);
// read_file, trimmed, as one number; text that is no number is `corrupt` and named.
[[nodiscard]] Result<double> read_number(const std::filesystem::path& path);

// Writes a temporary file beside `path` and renames it over: readers see the old or the new content, never a part.
[[nodiscard]] Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view content);

// Appends one line (with its '\n'), adding the missing line end of a last line first. Creates the file.
[[nodiscard]] Result<void> append_line(const std::filesystem::path& path, std::string_view line);

// Refuses an output that is the same file as an input, also through links (a hard or symbolic one).
[[nodiscard]] Result<void> refuse_same_file(const std::filesystem::path& input, const std::filesystem::path& output);

// Names in a folder, sorted; empty if the folder is missing or unreadable.
[[nodiscard]] std::vector<std::string> list_dir(const std::filesystem::path& path);

// Closes a descriptor, unless it is negative, and sets it to -1.
void close_fd(int& fd);

// An Error for `errno` after a failed call on `what` ("cannot WHAT PATH: reason").
[[nodiscard]] Error errno_error(std::string_view what, const std::filesystem::path& path, int error_number);

}  // namespace ergometer
