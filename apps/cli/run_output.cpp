#include "run_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/file.hpp"
#include "run_epochs.hpp"

namespace ergometer::cli {
namespace {

constexpr std::size_t kBlock = 64 * 1024;
// How long a stream must be silent after the command's end to count as copied. Only for streams that somebody else
// still holds; the usual end is the end of file.
constexpr int kQuietMs = 50;

bool write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
      // A target that somebody made non-blocking: wait as a blocking write would.
      pollfd ready{fd, POLLOUT, 0};
      if (errno == EAGAIN) ::poll(&ready, 1, -1);
      continue;
    }
    if (n < 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

Result<void> open_terminal(int target, int& tool, int& command) {
  winsize size{};
  ::ioctl(target, TIOCGWINSZ, &size);
  if (::openpty(&tool, &command, nullptr, nullptr, &size) != 0)
    return tl::unexpected(errno_error("open", "a terminal for the command", errno));
  // Raw: our own terminal already turns line ends and control characters into what they mean.
  termios settings{};
  ::tcgetattr(command, &settings);
  ::cfmakeraw(&settings);
  ::tcsetattr(command, TCSANOW, &settings);
  ::fcntl(tool, F_SETFD, FD_CLOEXEC);
  ::fcntl(command, F_SETFD, FD_CLOEXEC);
  return {};
}

}  // namespace

Result<Passthrough> Passthrough::create(int target) {
  Passthrough stream;
  stream.target_ = target;
  stream.terminal_ = ::isatty(target) == 1;
  if (::pipe2(stream.wake_, O_CLOEXEC) != 0) return tl::unexpected(errno_error("create", "a pipe", errno));
  if (stream.terminal_) {
    if (auto opened = open_terminal(target, stream.tool_fd_, stream.command_fd_); !opened)
      return tl::unexpected(opened.error());
    return stream;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return tl::unexpected(errno_error("create", "a pipe", errno));
  stream.tool_fd_ = ends[0];
  stream.command_fd_ = ends[1];
  return stream;
}

Passthrough::Passthrough(Passthrough&& other) noexcept
    : target_(other.target_),
      command_fd_(std::exchange(other.command_fd_, -1)),
      tool_fd_(std::exchange(other.tool_fd_, -1)),
      wake_{std::exchange(other.wake_[0], -1), std::exchange(other.wake_[1], -1)},
      terminal_(other.terminal_) {}

Passthrough::~Passthrough() {
  if (thread_.joinable()) finish();
  for (int* fd : {&command_fd_, &tool_fd_, &wake_[0], &wake_[1]}) close_fd(*fd);
}

void Passthrough::start(TakeLine take, BeforeWrite before_write) {
  close_fd(command_fd_);
  thread_ = std::thread([this, take = std::move(take), before = std::move(before_write)] { copy(take, before); });
}

void Passthrough::copy(const TakeLine& take, const BeforeWrite& before_write) {
  std::array<char, kBlock> buffer;
  LineCutter lines;
  SystemClock clock;
  bool finishing = false;
  for (;;) {
    std::array<pollfd, 2> waiting{pollfd{tool_fd_, POLLIN, 0}, pollfd{finishing ? -1 : wake_[0], POLLIN, 0}};
    const int ready = ::poll(waiting.data(), waiting.size(), finishing ? kQuietMs : -1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) break;
    if (waiting[1].revents) finishing = true;
    if (!waiting[0].revents) continue;
    const ssize_t n = ::read(tool_fd_, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    // A terminal whose last user has gone answers EIO.
    if (n <= 0) {
      ended_ = true;
      break;
    }
    const MonoTime t = clock.now();
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
    if (terminal_) before_write(bytes);
    if (!write_all(target_, bytes.data(), bytes.size())) {
      // Nobody reads us any more: the command must learn that as it would without us.
      ended_ = true;
      close_fd(tool_fd_);
      break;
    }
    lines.add(bytes, [&](std::string_view line) { take(line, t); });
  }
  lines.finish([&](std::string_view line) { take(line, clock.now()); });
}

void Passthrough::finish() {
  if (!thread_.joinable()) return;
  [[maybe_unused]] const auto woken = ::write(wake_[1], "x", 1);
  thread_.join();
  if (ended_) return;
  // Other threads may hold any lock now, so the new process only copies.
  if (::fork() != 0) return;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t n = ::read(tool_fd_, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || !write_all(target_, buffer.data(), static_cast<std::size_t>(n))) ::_exit(0);
  }
}

void Passthrough::resize() const {
  winsize size{};
  if (terminal_ && ::ioctl(target_, TIOCGWINSZ, &size) == 0) ::ioctl(tool_fd_, TIOCSWINSZ, &size);
}

}  // namespace ergometer::cli
