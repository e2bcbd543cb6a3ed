#include "daemon/listener.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/file.hpp"
#include "base/number.hpp"

namespace ergometer::daemon {
namespace {
namespace fs = std::filesystem;

constexpr int kFirstPassed = 3;  // SD_LISTEN_FDS_START of sd_listen_fds(3)
constexpr int kBacklog = 1024;  // who finds the queue full is turned away at once

Result<int> take_lock(const fs::path& socket) {
  const auto file = socket.parent_path() / "ergometerd.lock";
  std::error_code ec;
  fs::create_directories(file.parent_path(), ec);
  int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return tl::unexpected(errno_error("open the lock", file, errno));
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  const int error = errno;
  close_fd(fd);
  if (error != EWOULDBLOCK) return tl::unexpected(errno_error("lock", file, error));
  return fail(ErrorCode::exists, fmt::format("another ergometerd serves this node ({} is locked)", file.string()),
              "one is enough; stop the other: sudo systemctl stop ergometerd.socket ergometerd");
}

// The socket that systemd opened for us, by the protocol of sd_listen_fds(3); -1 if it did not.
Result<int> passed_socket(const Environment& environment) {
  const auto number = [&](const char* name) {
    const auto it = environment.find(name);
    return it == environment.end() ? std::nullopt : parse_int(it->second);
  };
  if (number("LISTEN_PID") != ::getpid()) return -1;
  const auto count = number("LISTEN_FDS").value_or(0);
  if (count == 0) return -1;
  int domain = 0, listens = 0;
  socklen_t size = sizeof(domain);
  const bool known = count == 1 && ::getsockopt(kFirstPassed, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
                     ::getsockopt(kFirstPassed, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0;
  if (!known || domain != AF_UNIX || !listens)
    return fail(ErrorCode::invalid_argument, "what was passed as LISTEN_FDS is not one listening Unix socket",
                "ergometerd.socket has one ListenStream, the path of the socket");
  ::fcntl(kFirstPassed, F_SETFD, FD_CLOEXEC);
  ::fcntl(kFirstPassed, F_SETFL, ::fcntl(kFirstPassed, F_GETFL) | O_NONBLOCK);
  return kFirstPassed;
}

Result<int> own_socket(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof(address.sun_path))
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is longer than the {} bytes that a socket's path may have", path.string(),
                            sizeof(address.sun_path) - 1),
                "use a shorter host root");
  std::memcpy(address.sun_path, path.c_str(), path.native().size());
  // Left behind by a daemon that was killed: the lock says that it is nobody's. What is no socket is not ours.
  struct stat st {};
  if (::lstat(path.c_str(), &st) == 0 && S_ISSOCK(st.st_mode)) ::unlink(path.c_str());
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return tl::unexpected(errno_error("open the socket", path, errno));
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      ::chmod(path.c_str(), 0666) == 0 && ::listen(fd, kBacklog) == 0)
    return fd;
  const auto error = errno_error("listen at", path, errno);
  close_fd(fd);
  return tl::unexpected(error);
}

}  // namespace

Result<Listener> Listener::open(const fs::path& socket, const Environment& environment) {
  Listener listener;
  const auto lock = take_lock(socket);
  if (!lock) return tl::unexpected(lock.error());
  listener.lock_ = *lock;
  auto fd = passed_socket(environment);
  if (fd && *fd < 0) {
    fd = own_socket(socket);
    if (fd) listener.own_ = socket;
  }
  if (!fd) return tl::unexpected(fd.error());
  listener.fd_ = *fd;
  return listener;
}

Listener::Listener(Listener&& other) noexcept
    : lock_(std::exchange(other.lock_, -1)),
      fd_(std::exchange(other.fd_, -1)),
      own_(std::exchange(other.own_, fs::path())) {}

Listener::~Listener() {
  if (!own_.empty()) ::unlink(own_.c_str());
  close_fd(fd_);
  close_fd(lock_);
}

}  // namespace ergometer::daemon
