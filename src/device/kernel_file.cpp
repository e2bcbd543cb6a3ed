#include "device/kernel_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {

KernelFile::KernelFile(std::filesystem::path path, std::size_t max_bytes)
    : path_(std::move(path)), max_bytes_(max_bytes) {}

KernelFile::KernelFile(KernelFile&& other) noexcept
    : path_(std::move(other.path_)),
      max_bytes_(other.max_bytes_),
      fd_(std::exchange(other.fd_, -1)),
      buffer_(std::move(other.buffer_)) {}

KernelFile::~KernelFile() { close(); }

void KernelFile::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<std::string_view> KernelFile::read_open_file() {
  std::size_t used = 0;
  for (;;) {
    // One byte more than allowed, to see that there is more.
    const std::size_t wanted = std::min(std::max<std::size_t>(used * 2, kPage), max_bytes_) + 1;
    if (buffer_.size() < wanted) buffer_.resize(wanted);
    const ssize_t n = ::pread(fd_, buffer_.data() + used, wanted - used, static_cast<off_t>(used));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return tl::unexpected(errno_error("read", path_, errno));
    used += static_cast<std::size_t>(n);
    if (used > max_bytes_)
      return fail(ErrorCode::corrupt, fmt::format("{} is larger than {} bytes", path_.string(), max_bytes_));
    if (n == 0 || max_bytes_ <= kPage) break;
  }
  // A removed file of a plain file system still answers through the open descriptor; sysfs itself answers ENODEV.
  struct stat st {};
  if (::fstat(fd_, &st) != 0 || st.st_nlink == 0)
    return fail(ErrorCode::lost, fmt::format("{} was removed", path_.string()));
  if (used == 0) return fail(ErrorCode::corrupt, path_.string() + " is empty");
  return std::string_view(buffer_).substr(0, used);
}

Result<std::string_view> KernelFile::read() {
  const bool was_open = fd_ >= 0;
  for (const bool retry : {was_open, false}) {
    if (fd_ < 0) fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) return tl::unexpected(errno_error("read", path_, errno));
    auto content = read_open_file();
    if (content || content.error().code == ErrorCode::corrupt || content.error().code == ErrorCode::unavailable)
      return content;
    close();
    if (!retry) return content;
  }
  return fail(ErrorCode::internal, "unreachable");
}

void ReadState::good(Readings& out) {
  if (error_) out.event("back", label_);
  error_.reset();
}

void ReadState::bad(Readings& out, Error error) {
  if (!error_ || error_->code != error.code)
    out.event(error.code == ErrorCode::corrupt ? "rejected" : "lost", fmt::format("{}: {}", label_, error.message));
  error_ = std::move(error);
}

Result<std::int64_t> NumberFile::probe() {
  const auto text = file_.read();
  if (!text) return tl::unexpected(text.error());
  if (const auto value = parse_int(*text)) return *value;
  return fail(ErrorCode::corrupt,
              fmt::format("{} holds \"{}\", not a whole number", file_.path().string(), trim(*text).substr(0, 40)));
}

std::optional<std::int64_t> NumberFile::read(Readings& out) {
  const auto value = probe();
  if (!value) {
    state_.bad(out, value.error());
    return std::nullopt;
  }
  state_.good(out);
  return *value;
}

}  // namespace ergometer
