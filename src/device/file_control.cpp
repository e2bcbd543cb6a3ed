#include "device/file_control.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <string>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "device/kernel_file.hpp"

namespace ergometer {
namespace {
namespace fs = std::filesystem;

// One write, as sysfs wants it. Cutting the rest means nothing there and keeps a plain file right.
int write_once(const fs::path& file, const std::string& text) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const ssize_t n = ::write(fd, text.data(), text.size());
  const int error = n == static_cast<ssize_t>(text.size()) ? 0 : n < 0 ? errno : EIO;
  [[maybe_unused]] const bool cut = error == 0 && ::ftruncate(fd, n) == 0;
  return ::close(fd) != 0 && error == 0 ? errno : error;
}

Error write_error(const ControlInfo& info, const fs::path& file, const ControlValue& value, int number) {
  Error error = errno_error(fmt::format("set {} to {}: cannot write", info.name, to_text(value)), file, number);
  if (error.code == ErrorCode::permission_denied) {
    error.hint = permission_remedy();
  } else if (number == EROFS) {
    error.code = ErrorCode::permission_denied;
    error.hint = "/sys is read-only here: start the container with write access to it, or set it outside";
  } else if (number == EINVAL) {
    error.code = ErrorCode::invalid_argument;
    const auto range = range_text(info);
    error.hint = range.empty() ? "the kernel refuses this value" : "it takes " + range;
  }
  return error;
}

}  // namespace

std::optional<double> file_number(const fs::path& file, double per_unit) {
  const auto number = NumberFile(file, "").probe();
  if (!number || *number < 0) return std::nullopt;
  return static_cast<double>(*number) / per_unit;
}

FileControl::FileControl(ControlInfo info, fs::path file, FileFormat format, Effective effective)
    : Control(std::move(info)), file_(std::move(file)), format_(format), effective_(std::move(effective)) {
  info_.writers = "root";
  info_.writable = ::access(file_.c_str(), W_OK) == 0;
}

Result<ControlValue> FileControl::get() {
  if (info_.unit == ControlUnit::word && !format_.on_off) {
    const auto text = read_file(file_, KernelFile::kPage);
    if (!text) return tl::unexpected(text.error());
    if (auto word = parse_value(*text, ControlUnit::word)) return *word;
    return fail(ErrorCode::corrupt,
                fmt::format("{} holds \"{}\", not a word", file_.string(), trim(*text).substr(0, 40)));
  }
  const auto number = NumberFile(file_, "").probe();
  if (!number) return tl::unexpected(number.error());
  if (format_.on_off) return ControlValue(std::string(*number != 0 ? "on" : "off"));
  return make_value(info_.unit, static_cast<double>(*number) / format_.per_unit);
}

Result<void> FileControl::set(const ControlValue& value) {
  std::string text;
  if (format_.on_off)
    text = value == ControlValue(std::string("on")) ? "1" : "0";
  else if (info_.unit == ControlUnit::word)
    text = to_text(value);
  else
    append_int(text, std::llround(number_of(value) * format_.per_unit));
  if (const int error = write_once(file_, text + "\n"); error != 0)
    return tl::unexpected(write_error(info_, file_, value, error));
  return {};
}

}  // namespace ergometer
