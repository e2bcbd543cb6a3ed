#include "base/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace fs = std::filesystem;
namespace {

class FileHandle {
 public:
  explicit FileHandle(int fd) : fd_(fd) {}
  ~FileHandle() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  int get() const { return fd_; }
  // Closes now; false if the kernel reports a late write error.
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0;
  }

 private:
  int fd_;
};

Result<void> write_all(int fd, std::string_view content, const fs::path& path) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return tl::unexpected(errno_error("write", path, errno));
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace

fs::path HostRoot::path(std::string_view absolute) const {
  if (is_real()) return fs::path(absolute);
  return prefix_ / fs::path(absolute).relative_path();
}

Error errno_error(std::string_view what, const fs::path& path, int error_number) {
  ErrorCode code = ErrorCode::io;
  std::string hint;
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      code = ErrorCode::not_found;
      break;
    case EACCES:
    case EPERM:
      code = ErrorCode::permission_denied;
      break;
    case ENODEV:
    case ENXIO:
      code = ErrorCode::lost;
      break;
    case EAGAIN:
    case EBUSY:
    case ENODATA:
      code = ErrorCode::unavailable;
      break;
    case EEXIST:
      code = ErrorCode::exists;
      break;
    case ENOSPC:
    case EDQUOT:
      hint = "free space on that file system, or choose another folder";
      break;
    case EROFS:
      hint = "that file system is read-only: choose another folder";
      break;
    default:
      break;
  }
  return Error{
      code, fmt::format("cannot {} {}: {}", what, path.string(), std::generic_category().message(error_number)), hint};
}

Result<std::string> read_file(const fs::path& path, std::size_t max_bytes) {
  const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return tl::unexpected(errno_error("read", path, errno));
  std::string content;
  std::size_t used = 0;
  // sysfs reports a size of 4096 or 0 whatever the content, so the size is found by reading.
  for (;;) {
    if (content.size() < used + 4096) content.resize(std::max<std::size_t>(used * 2, 4096));
    const ssize_t n = ::read(file.get(), content.data() + used, content.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return tl::unexpected(errno_error("read", path, errno));
    if (n == 0) break;
    used += static_cast<std::size_t>(n);
    if (used > max_bytes)
      return fail(ErrorCode::corrupt, fmt::format("{} is larger than {} bytes", path.string(), max_bytes));
  }
  content.resize(used);
  return content;
}

std::string trimmed_text(const fs::path& path) {
  const auto text = read_file(path, 4096);
  return text ? std::string(trim(*text)) : std::string();
}

std::string short_text(const fs::path& path) {
  return std::string(trim(split(trimmed_text(path), '\n').front()).substr(0, 128));
}

Result<double> read_number(const fs::path& path) {
  const auto text = read_file(path, 4096);
  if (!text) return tl::unexpected(text.error());
  const auto value = parse_double(*text);
  if (!value)
    return fail(ErrorCode::corrupt,
                fmt::format("{} holds \"{}\", not a number", path.string(), trim(*text).substr(0, 40)));
  return *value;
}

Result<void> write_file_atomically(const fs::path& path, std::string_view content) {
  const fs::path temporary = path.string() + fmt::format(".tmp{}", ::getpid());
  FileHandle file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) return tl::unexpected(errno_error("create", temporary, errno));
  auto written = write_all(file.get(), content, path);
  if (written && !file.close()) written = tl::unexpected(errno_error("write", path, errno));
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0)
    written = tl::unexpected(errno_error("replace", path, errno));
  if (!written) ::unlink(temporary.c_str());
  return written;
}

Result<void> append_line(const fs::path& path, std::string_view line) {
  const FileHandle file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file.get() < 0) return tl::unexpected(errno_error("open", path, errno));
  struct stat st {};
  if (::fstat(file.get(), &st) != 0) return tl::unexpected(errno_error("inspect", path, errno));
  std::string text;
  if (st.st_size > 0) {
    char last = '\n';
    if (::pread(file.get(), &last, 1, st.st_size - 1) != 1) return tl::unexpected(errno_error("read", path, errno));
    if (last != '\n') text += '\n';
  }
  text += line;
  if (text.empty() || text.back() != '\n') text += '\n';
  return write_all(file.get(), text, path);
}

Result<void> refuse_same_file(const fs::path& input, const fs::path& output) {
  std::error_code ec;
  if (fs::equivalent(input, output, ec) && !ec)
    return fail(ErrorCode::exists, fmt::format("{} is the input itself ({})", output.string(), input.string()),
                "give another output name with -o");
  return {};
}

std::vector<std::string> list_dir(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code ec;
  for (fs::directory_iterator it(path, ec), end; !ec && it != end; it.increment(ec))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace ergometer
