#include "device/remote/link.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/file.hpp"
#include "device/remote/protocol.hpp"

namespace ergometer::remote {
namespace {

using Steady = std::chrono::steady_clock;

constexpr const char* kRestart = "see: systemctl status ergometerd; then: sudo systemctl restart ergometerd";
// Two reads of one clock, with the other side's in between.
constexpr Nanos kClockTolerance = std::chrono::milliseconds(1);
constexpr Nanos kQueuePause = std::chrono::milliseconds(5);

Error no_answer(Nanos patience) {
  return {ErrorCode::timeout, fmt::format("ergometerd does not answer within {:g} s", seconds(patience)), kRestart};
}

Error connection_ended() { return {ErrorCode::lost, "ergometerd has closed the connection", kRestart}; }

Error connect_error(const std::filesystem::path& socket, int number) {
  switch (number) {
    case ECONNREFUSED:
      return {ErrorCode::unavailable, fmt::format("{} is there, but no ergometerd listens at it", socket.string()),
              "sudo systemctl restart ergometerd.socket"};
    case EAGAIN:
      return {ErrorCode::unavailable, fmt::format("ergometerd takes no connections at {}", socket.string()), kRestart};
    case EACCES:
    case EPERM:
      return {ErrorCode::permission_denied,
              fmt::format("permission denied: {} cannot be written by this user", socket.string()),
              "the socket is for everybody and the daemon decides who may read: sudo chmod 666 " + socket.string()};
    default:
      return errno_error("connect to", socket, number);
  }
}

// Whether the descriptor became ready in time.
bool wait_for(int fd, short events, Steady::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now()).count();
    pollfd p{fd, events, 0};
    const int n = ::poll(&p, 1, static_cast<int>(std::clamp<long long>(left, 0, 60000)));
    if (n > 0) return true;
    if (n == 0 && Steady::now() >= deadline) return false;
    if (n < 0 && errno != EINTR) return false;
  }
}

}  // namespace

Result<Link> Link::open(const std::filesystem::path& socket, Clock& clock, Nanos patience) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto& name = socket.native();
  if (name.size() >= sizeof(address.sun_path))
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is longer than the {} bytes that a socket's path may have", name,
                            sizeof(address.sun_path) - 1),
                "use a shorter host root");
  std::memcpy(address.sun_path, name.data(), name.size());
  const MonoTime before = clock.now();
  Link link(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (link.fd_ < 0) return tl::unexpected(errno_error("open a socket for", socket, errno));
  const auto deadline = Steady::now() + patience;
  // A full queue is no state that poll() tells.
  while (::connect(link.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN || Steady::now() >= deadline) return tl::unexpected(connect_error(socket, errno));
    std::this_thread::sleep_for(kQueuePause);
  }
  const auto greeting = link.receive(deadline);
  if (!greeting)
    return tl::unexpected(greeting.error().code == ErrorCode::timeout ? no_answer(patience) : greeting.error());
  const auto now = parse_greeting(*greeting);
  if (!now) return tl::unexpected(now.error());
  if (*now < before - kClockTolerance || *now > clock.now() + kClockTolerance)
    return fail(ErrorCode::unsupported, "ergometerd's monotonic clock is not this program's",
                "both must run in one time namespace: start the container without one of its own");
  return link;
}

Link::Link(Link&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Link& Link::operator=(Link&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
Link::~Link() { close_fd(fd_); }

Result<std::string> Link::ask(const std::string& line, Nanos patience) {
  const auto deadline = Steady::now() + patience;
  if (auto sent = send(line, deadline); !sent) return tl::unexpected(sent.error());
  auto answer = receive(deadline);
  if (!answer && answer.error().code == ErrorCode::timeout) return tl::unexpected(no_answer(patience));
  return answer;
}

Result<void> Link::send(std::string_view bytes, Steady::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return tl::unexpected(connection_ended());
    if (!wait_for(fd_, POLLOUT, deadline)) return fail(ErrorCode::timeout, "no answer");
  }
  return {};
}

// One question is open at a time, so nothing follows the line's end.
Result<std::string> Link::receive(Steady::time_point deadline) {
  std::string line;
  std::array<char, 16384> piece;
  for (;;) {
    const ssize_t n = ::recv(fd_, piece.data(), piece.size(), 0);
    if (n == 0) return tl::unexpected(connection_ended());
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return tl::unexpected(connection_ended());
      if (!wait_for(fd_, POLLIN, deadline)) return fail(ErrorCode::timeout, "no answer");
      continue;
    }
    line.append(piece.data(), static_cast<std::size_t>(n));
    if (line.size() > kMostReplyBytes)
      return fail(ErrorCode::corrupt, fmt::format("an answer of more than {} bytes", kMostReplyBytes), kRestart);
    if (line.back() == '\n') {
      line.pop_back();
      return line;
    }
  }
}

}  // namespace ergometer::remote
