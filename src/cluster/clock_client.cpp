#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/file.hpp"
#include "cluster/clock_service.hpp"
#include "cluster/clock_wire.hpp"

namespace ergometer {
namespace {

constexpr int kRounds = 32;
constexpr Nanos kGreetFor = std::chrono::milliseconds(200);  // a stranger who says nothing must not take all the time

class Connection {
 public:
  explicit Connection(int fd) : fd_(fd) {}
  Connection(Connection&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Connection& operator=(Connection&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Connection() { close_fd(fd_); }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

int milliseconds_until(Clock& clock, MonoTime deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock.now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

// A connection on its way to `address`; a negative descriptor if there is no way.
Connection begin_connecting(const std::string& address, int port) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  const sockaddr* to = nullptr;
  socklen_t length = 0;
  if (::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<std::uint16_t>(port));
    to = reinterpret_cast<const sockaddr*>(&v4);
    length = sizeof v4;
  } else if (::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<std::uint16_t>(port));
    to = reinterpret_cast<const sockaddr*>(&v6);
    length = sizeof v6;
  } else {
    return Connection(-1);
  }
  int fd = ::socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (fd >= 0) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (fd >= 0 && ::connect(fd, to, length) != 0 && errno != EINPROGRESS) close_fd(fd);
  return Connection(fd);
}

bool is_connected(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
}

// One that answered, of all that are on their way; it is taken out of the list. Unset when none is left in time.
std::optional<Connection> next_connected(std::vector<Connection>& on_their_way, Clock& clock, MonoTime deadline) {
  while (!on_their_way.empty()) {
    std::vector<pollfd> waiting;
    for (const auto& connection : on_their_way) waiting.push_back({connection.fd(), POLLOUT, 0});
    const int ready = ::poll(waiting.data(), waiting.size(), milliseconds_until(clock, deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    for (std::size_t i = waiting.size(); i-- > 0;) {
      if (!waiting[i].revents) continue;
      Connection connection = std::move(on_their_way[i]);
      on_their_way.erase(on_their_way.begin() + static_cast<std::ptrdiff_t>(i));
      if (is_connected(connection.fd())) return connection;
    }
  }
  return std::nullopt;
}

bool send_all(int fd, std::string_view bytes) {
  return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

// Exactly `size` bytes.
std::optional<std::string> receive(int fd, std::size_t size, Clock& clock, MonoTime deadline) {
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < size;) {
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, milliseconds_until(clock, deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    const ssize_t n = ::recv(fd, bytes.data() + done, size - done, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) return std::nullopt;
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

bool is_the_clock(int fd, const ClockAddress& address, Clock& clock, MonoTime deadline) {
  if (!send_all(fd, clock_wire::greeting(address.asker))) return false;
  return receive(fd, address.answerer.size() + 1, clock, std::min(deadline, clock.now() + kGreetFor)) ==
         address.answerer + "\n";
}

std::optional<ClockOffset> one_round(int fd, int number, Clock& clock, MonoTime deadline) {
  std::string question;
  clock_wire::append_time(question, number);
  const MonoTime asked = clock.now();
  if (!send_all(fd, question)) return std::nullopt;
  const auto answer = receive(fd, clock_wire::kAnswer, clock, deadline);
  const MonoTime answered = clock.now();
  if (!answer || !answer->starts_with(question)) return std::nullopt;
  const Nanos way = answered - asked;
  const MonoTime middle = asked + way / 2;
  // Rounded up: half of an odd way must not be made smaller.
  return ClockOffset{middle, mono_ns(clock_wire::time_at(*answer, clock_wire::kQuestion)) - middle,
                     (way + Nanos{1}) / 2};
}

std::optional<ClockOffset> best_of_rounds(int fd, Clock& clock, MonoTime deadline) {
  std::optional<ClockOffset> best;
  for (int number = 0; number < kRounds; ++number) {
    const auto round = one_round(fd, number, clock, deadline);
    if (!round) break;
    if (!best || round->error < best->error) best = round;
  }
  return best;
}

}  // namespace

Result<ClockOffset> ask_clock(const ClockAddress& address, Clock& clock, Nanos patience) {
  const MonoTime deadline = clock.now() + patience;
  std::vector<Connection> on_their_way;
  for (const auto& name : address.addresses)
    if (auto connection = begin_connecting(name, address.port); connection.fd() >= 0)
      on_their_way.push_back(std::move(connection));
  bool strangers = false;
  while (auto connection = next_connected(on_their_way, clock, deadline)) {
    if (!is_the_clock(connection->fd(), address, clock, deadline)) {
      strangers = true;
      continue;
    }
    if (const auto offset = best_of_rounds(connection->fd(), clock, deadline)) return *offset;
  }
  const auto where = fmt::format("port {} of {}", address.port, fmt::join(address.addresses, ", "));
  if (strangers) return fail(ErrorCode::corrupt, "no clock of this run answers at " + where);
  return fail(ErrorCode::timeout, "nobody answers at " + where, "let the nodes of a run reach each other over TCP");
}

}  // namespace ergometer
