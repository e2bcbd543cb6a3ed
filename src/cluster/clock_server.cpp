#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file.hpp"
#include "base/json_object.hpp"
#include "cluster/clock_service.hpp"
#include "cluster/clock_wire.hpp"

namespace ergometer {
namespace {

constexpr std::size_t kMostClients = 256;
constexpr std::size_t kMostAddresses = 32;
constexpr Nanos kClientTime = std::chrono::seconds(5);  // for everything that one asks
constexpr const char* kClockSchema = "ergometer.clock/1";

Result<std::string> random_hex(std::size_t bytes) {
  std::array<unsigned char, 64> random{};
  if (::getrandom(random.data(), bytes, 0) != static_cast<ssize_t>(bytes))
    return tl::unexpected(errno_error("read", "random numbers", errno));
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += fmt::format("{:02x}", random[i]);
  return text;
}

// Of all interfaces that are up; the loopback's last, for processes of this host.
std::vector<std::string> interface_addresses() {
  std::vector<std::string> found, loopback;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {"127.0.0.1"};
  for (const ifaddrs* at = all; at; at = at->ifa_next) {
    if (!at->ifa_addr || !(at->ifa_flags & IFF_UP)) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (at->ifa_addr->sa_family == AF_INET) {
      ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr, text.data(), text.size());
    } else if (at->ifa_addr->sa_family == AF_INET6) {
      const auto& address = reinterpret_cast<const sockaddr_in6*>(at->ifa_addr)->sin6_addr;
      if (IN6_IS_ADDR_LINKLOCAL(&address)) continue;  // means nothing on another node
      ::inet_ntop(AF_INET6, &address, text.data(), text.size());
    } else {
      continue;
    }
    ((at->ifa_flags & IFF_LOOPBACK) ? loopback : found).emplace_back(text.data());
  }
  ::freeifaddrs(all);
  if (found.size() > kMostAddresses) found.resize(kMostAddresses);
  found.insert(found.end(), loopback.begin(), loopback.end());
  return found;
}

int bound_socket(int family) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int off = 0;
  sockaddr_storage any{};
  any.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const socklen_t length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&any), length) == 0 && ::listen(fd, 128) == 0) return fd;
  ::close(fd);
  return -1;
}

int port_of(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

// Takes as long for a wrong text as for the right one.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i % b.size()]);
  return difference == 0;
}

}  // namespace

std::string clock_address_to_json(const ClockAddress& address) {
  return nlohmann::ordered_json{{"schema", kClockSchema},         {"machine_clock", address.machine_clock},
                                {"addresses", address.addresses}, {"port", address.port},
                                {"asker", address.asker},         {"answerer", address.answerer}}
             .dump(2) +
         "\n";
}

Result<void> write_clock_address(const std::filesystem::path& file, const ClockAddress& address) {
  const auto text = clock_address_to_json(address);
  const auto draft = file.string() + fmt::format(".{}", address.asker.substr(0, 8));
  int fd = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return tl::unexpected(errno_error("create", draft, errno));
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  int reason = written ? 0 : errno;
  close_fd(fd);
  if (written && ::rename(draft.c_str(), file.c_str()) == 0) return {};
  if (written) reason = errno;
  ::unlink(draft.c_str());
  return tl::unexpected(errno_error("write", file, reason));
}

Result<ClockAddress> clock_address_from_json(std::string_view text, const std::string& source) {
  ClockAddress address;
  auto read = read_json(text, source, kClockSchema, [&](JsonObject& o) {
    o.read("machine_clock", address.machine_clock);
    o.read("addresses", address.addresses);
    o.read("port", address.port);
    o.read("asker", address.asker);
    o.read("answerer", address.answerer);
  });
  if (!read) return tl::unexpected(read.error());
  if (address.port < 1 || address.port > 65535 || address.asker.empty() || address.answerer.empty())
    return fail(ErrorCode::corrupt, source + " names no clock");
  return address;
}

struct ClockServer::State {
  struct Client {
    std::string received;
    bool known = false;
    MonoTime until{};
    unsigned answered = 0;
  };
  ClockAddress address;
  std::shared_ptr<Clock> clock;
  int listener = -1, wake = -1;
  std::map<int, Client> clients;
  std::thread thread;

  ~State() {
    for (const auto& [fd, client] : clients) ::close(fd);
    close_fd(listener);
    close_fd(wake);
  }
  void run();
  void accept_all();
  bool serve_client(int fd, Client& client);
  bool greet(int fd, Client& client) const;
};

void ClockServer::State::accept_all() {
  for (;;) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (clients.size() >= kMostClients) {
      ::close(fd);  // asks again later
      continue;
    }
    clients[fd].until = clock->now() + kClientTime;
  }
}

// False ends the connection: of somebody who does not know the secret, without a word.
bool ClockServer::State::greet(int fd, Client& client) const {
  const auto end = client.received.find('\n');
  if (end == std::string::npos) return client.received.size() < clock_wire::kLongestGreeting;
  const auto expected = clock_wire::greeting(address.asker);
  if (!same_secret(client.received.substr(0, end + 1), expected)) return false;
  client.received.erase(0, end + 1);
  client.known = true;
  const auto answer = address.answerer + "\n";
  return ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(answer.size());
}

bool ClockServer::State::serve_client(int fd, Client& client) {
  std::array<char, 256> buffer;
  const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (n <= 0) return false;
  client.received.append(buffer.data(), static_cast<std::size_t>(n));
  if (!client.known && !greet(fd, client)) return false;
  if (!client.known) return true;
  while (client.received.size() >= clock_wire::kQuestion) {
    if (++client.answered > clock_wire::kMostQuestions) return false;
    std::string answer = client.received.substr(0, clock_wire::kQuestion);
    client.received.erase(0, clock_wire::kQuestion);
    clock_wire::append_time(answer, to_ns(clock->now()));
    // So few bytes always fit; whoever does not read them is no asker.
    if (::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(answer.size())) return false;
  }
  return true;
}

void ClockServer::State::run() {
  for (;;) {
    std::vector<pollfd> waiting{{wake, POLLIN, 0}, {listener, POLLIN, 0}};
    for (const auto& [fd, client] : clients) waiting.push_back({fd, POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), clients.empty() ? -1 : 1000) < 0 && errno != EINTR) return;
    if (waiting[0].revents) return;
    const MonoTime now = clock->now();
    for (std::size_t i = 2; i < waiting.size(); ++i) {
      const auto at = clients.find(waiting[i].fd);
      if (now < at->second.until && (!waiting[i].revents || serve_client(at->first, at->second))) continue;
      ::close(at->first);
      clients.erase(at);
    }
    if (waiting[1].revents) accept_all();
  }
}

ClockServer::ClockServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

ClockServer::~ClockServer() {
  if (!state_->thread.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto woken = ::write(state_->wake, &one, sizeof one);
  state_->thread.join();
}

const ClockAddress& ClockServer::address() const { return state_->address; }

Result<std::unique_ptr<ClockServer>> ClockServer::open(std::string machine_clock) {
  auto state = std::make_unique<State>();
  state->listener = bound_socket(AF_INET6);  // takes IPv4 as well
  if (state->listener < 0) state->listener = bound_socket(AF_INET);
  if (state->listener < 0) return tl::unexpected(errno_error("listen on", "any interface", errno));
  state->wake = ::eventfd(0, EFD_CLOEXEC);
  if (state->wake < 0) return tl::unexpected(errno_error("create", "an event", errno));
  auto asker = random_hex(16), answerer = random_hex(16);
  if (!asker || !answerer) return tl::unexpected(asker ? answerer.error() : asker.error());
  state->address = {std::move(machine_clock), interface_addresses(), port_of(state->listener), std::move(*asker),
                    std::move(*answerer)};
  return std::unique_ptr<ClockServer>(new ClockServer(std::move(state)));
}

void ClockServer::serve(std::shared_ptr<Clock> clock) {
  state_->clock = std::move(clock);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  state_->thread = std::thread([state = state_.get()] {
    pthread_setname_np(pthread_self(), "e:clock");
    state->run();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace ergometer
