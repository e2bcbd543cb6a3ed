#include "daemon/server.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <thread>

#include "base/file.hpp"
#include "daemon/limits.hpp"

namespace ergometer::daemon {
namespace {

using Steady = std::chrono::steady_clock;

constexpr int kTickMs = 100;

struct Client {
  int fd = -1;
  Caller caller;
  bool may_read = false;
  bool waiting = false;  // for the answer of the services
  bool early = false;    // it has sent something before its last question was answered
  std::string in, out;   // a part of a request; the part of an answer that is not taken yet
  std::size_t sent = 0;  // of `out`
  bool closing = false;  // once `out` is taken
  bool dead = false;
  double tokens = kRequestBurst;
  Steady::time_point refilled = Steady::now(), progress = Steady::now();
  // The reading that it waits for.
  std::shared_ptr<Feed> feed;
  std::uint64_t ticket = 0, cursor = 0;
  Steady::time_point asked;
  std::uint32_t interest = 0;  // what epoll was told
};

// Whether one more request is allowed now.
bool take_token(Client& c) {
  const auto now = Steady::now();
  c.tokens = std::min(kRequestBurst, c.tokens + kRequestRate * seconds(now - c.refilled));
  c.refilled = now;
  if (c.tokens < 1) return false;
  c.tokens -= 1;
  return true;
}

void say(Client& c, std::string line) { c.out += std::move(line); }

void refuse(Client& c, const Error& error) {
  say(c, remote::error_line(error));
  c.closing = true;
}

// Sends what is left; true if nothing is.
bool flush(Client& c) {
  while (c.sent < c.out.size()) {
    const ssize_t n = ::send(c.fd, c.out.data() + c.sent, c.out.size() - c.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      if (errno != EAGAIN) c.dead = true;
      return false;
    }
    c.sent += static_cast<std::size_t>(n);
    c.progress = Steady::now();
  }
  c.out.clear();
  c.sent = 0;
  if (c.closing) c.dead = true;
  return true;
}

}  // namespace

struct Server::State {
  void accept_all();
  void welcome(int fd);
  void receive(Client& c);
  void advance(Client& c);
  void answer(Client& c, std::string_view line);
  void answer_read(Client& c, const remote::Request& request);
  void ask_services(Client& c, remote::Request request);
  void finish_readings();
  void take_answers();
  [[nodiscard]] Result<void> admit(const Peer& peer) const;
  [[nodiscard]] std::size_t longest_request(const Client& c) const;
  void drop_stalled();
  void sweep();
  void watch(Client& c);
  void listen(bool on);
  [[nodiscard]] bool must_tick() const;
  void wake() const;

  int listening = -1, epoll = -1, event = -1;
  bool accepting = true;
  std::shared_ptr<Clock> clock;
  ServerOptions options;
  std::map<int, Client> clients;
  std::atomic<int> client_count{0};
  std::atomic<bool> stopping{false};

  Services* services = nullptr;
  std::uint64_t connections = 0;

  mutable std::mutex mutex;  // guards what follows
  std::vector<std::shared_ptr<Feed>> feeds;
  std::vector<std::pair<std::uint64_t, std::string>> answers;  // of the services, by connection
};

void Server::State::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(event, &one, sizeof(one));  // full means that it will wake anyway
}

void Server::State::listen(bool on) {
  epoll_event e{on ? static_cast<std::uint32_t>(EPOLLIN) : 0u, {}};
  e.data.fd = listening;
  ::epoll_ctl(epoll, EPOLL_CTL_MOD, listening, &e);
  accepting = on;
}

void Server::State::accept_all() {
  for (;;) {
    const int fd = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      welcome(fd);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    // Without a descriptor to spare the connection stays in the queue; looking at once again would only burn time.
    if (errno != EAGAIN) listen(false);
    return;
  }
}

Result<void> Server::State::admit(const Peer& peer) const {
  if (!is_among(peer, options.readers) && !(services && services->knows(peer)))
    return fail(ErrorCode::permission_denied,
                fmt::format("permission denied: ergometerd serves user {} nothing", peer.uid), options.readers.remedy);
  const auto same =
      std::ranges::count_if(clients, [&](const auto& other) { return other.second.caller.peer.uid == peer.uid; });
  const int most = peer.uid == 0 ? options.max_clients : std::max(1, options.max_clients / 2);
  if (static_cast<int>(clients.size()) < options.max_clients && same < most) return {};
  return fail(ErrorCode::unavailable, fmt::format("ergometerd has {} connections already", clients.size()),
              "close some, or raise max-clients in ergometerd.toml");
}

std::size_t Server::State::longest_request(const Client& c) const {
  return services ? services->longest_request(c.caller.peer) : remote::kMostRequestBytes;
}

void Server::State::welcome(int fd) {
  Client c;
  c.fd = fd;
  auto peer = peer_of(fd);
  const auto admitted = peer ? admit(*peer) : tl::unexpected(peer.error());
  if (!admitted) {
    refuse(c, admitted.error());
  } else {
    c.may_read = is_among(*peer, options.readers);
    c.caller = {++connections, std::move(*peer)};
    say(c, remote::greeting_line(options.version, clock->now()));
  }
  flush(c);
  if (c.closing || c.dead) {
    ::close(fd);
    return;
  }
  epoll_event e{EPOLLIN, {}};
  e.data.fd = fd;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) != 0) {
    ::close(fd);
    return;
  }
  c.interest = EPOLLIN;
  auto& kept = clients.emplace(fd, std::move(c)).first->second;
  watch(kept);
}

// One request at a time: what a client sends beyond that waits in the kernel, and then in the client.
void Server::State::watch(Client& c) {
  const bool busy = c.feed || c.waiting;
  c.early = c.early && busy;
  // Most clients ask one thing at a time: epoll is told to be quiet only about one that has said more.
  const std::uint32_t interest = !c.out.empty() ? EPOLLOUT : c.early ? 0u : static_cast<std::uint32_t>(EPOLLIN);
  if (interest == c.interest) return;
  epoll_event e{interest, {}};
  e.data.fd = c.fd;
  ::epoll_ctl(epoll, EPOLL_CTL_MOD, c.fd, &e);
  c.interest = interest;
}

void Server::State::receive(Client& c) {
  if (c.feed || c.waiting) {
    c.early = true;  // the kernel keeps it meanwhile
    return;
  }
  std::array<char, 4096> piece;
  const ssize_t n = ::recv(c.fd, piece.data(), piece.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    c.dead = true;
    return;
  }
  if (c.in.empty()) c.progress = Steady::now();
  c.in.append(piece.data(), static_cast<std::size_t>(n));
  advance(c);
}

// Goes on until the client or a sensor has to do something.
void Server::State::advance(Client& c) {
  for (;;) {
    if (!flush(c) || c.dead || c.feed || c.waiting) return;
    const auto end = c.in.find('\n');
    const auto length = (end == std::string::npos ? c.in.size() : end) + 1;
    if (length > remote::kMostRequestBytes && length > longest_request(c)) {
      refuse(c, {ErrorCode::invalid_argument, fmt::format("a request has at most {} bytes", remote::kMostRequestBytes),
                 "longer ones are for who may set controls: docs/daemon-protocol.md"});
      continue;
    }
    if (end == std::string::npos) return;
    const std::string line = c.in.substr(0, end);
    c.in.erase(0, end + 1);
    c.progress = Steady::now();
    answer(c, line);
  }
}

void Server::State::answer(Client& c, std::string_view line) {
  if (!take_token(c))
    return refuse(c, {ErrorCode::unavailable, fmt::format("more than {:g} requests a second", kRequestRate),
                      "ask less often: a reading has all rows since the last one"});
  auto request = remote::parse_request(line);
  if (!request) return refuse(c, request.error());
  const bool reads = request->kind == remote::Request::Kind::read || request->kind == remote::Request::Kind::list;
  if (!reads) return ask_services(c, std::move(*request));
  if (!c.may_read)
    return say(c, remote::error_line({ErrorCode::permission_denied,
                                      fmt::format("permission denied: user {} may not read sensors", c.caller.peer.uid),
                                      options.readers.remedy}));
  if (request->kind == remote::Request::Kind::read) return answer_read(c, *request);
  std::vector<SensorInfo> sensors;
  std::lock_guard lock(mutex);
  for (const auto& feed : feeds) sensors.push_back(feed->info());
  say(c, remote::sensors_line(sensors));
}

void Server::State::answer_read(Client& c, const remote::Request& request) {
  std::lock_guard lock(mutex);
  const auto found = std::ranges::find_if(feeds, [&](const auto& f) { return f->info().name == request.sensor; });
  if (found == feeds.end())
    return say(c,
               remote::error_line({ErrorCode::not_found,
                                   fmt::format("ergometerd has no sensor \"{}\"", request.sensor.substr(0, 64)), ""}));
  c.feed = *found;
  c.cursor = request.after.value_or(c.feed->end());
  c.ticket = c.feed->ask();
  c.asked = Steady::now();
}

void Server::State::ask_services(Client& c, remote::Request request) {
  if (!services)
    return say(c,
               remote::error_line({ErrorCode::unsupported, "this daemon serves readings only", "see docs/daemon.md"}));
  c.waiting = true;
  services->ask(c.caller, std::move(request), [this, connection = c.caller.connection](std::string line) {
    const std::lock_guard lock(mutex);
    answers.emplace_back(connection, std::move(line));
    wake();
  });
}

// Who has gone meanwhile needs no answer.
void Server::State::take_answers() {
  std::vector<std::pair<std::uint64_t, std::string>> taken;
  {
    const std::lock_guard lock(mutex);
    taken.swap(answers);
  }
  for (auto& [connection, line] : taken)
    for (auto& [fd, c] : clients) {
      if (c.caller.connection != connection || c.dead) continue;
      c.waiting = false;
      c.progress = Steady::now();
      say(c, std::move(line));
      advance(c);
      break;
    }
}

void Server::State::finish_readings() {
  for (auto& [fd, c] : clients) {
    if (!c.feed || c.dead) continue;
    const bool done = c.feed->is_done(c.ticket);
    if (!done && Steady::now() - c.asked < kLongestReading) continue;
    const auto batch = c.feed->from(c.cursor);
    auto failure = done ? c.feed->failure() : std::nullopt;
    if (!done && batch.rows.empty())
      failure = Error{
          ErrorCode::timeout,
          fmt::format("{} does not answer the daemon within {:g} s", c.feed->info().name, seconds(kLongestReading)),
          "look at the kernel log (dmesg) of the node"};
    say(c, failure ? remote::error_line(*failure) : remote::batch_line(batch));
    c.feed.reset();
    c.progress = Steady::now();
    advance(c);
  }
}

void Server::State::drop_stalled() {
  const auto now = Steady::now();
  for (auto& [fd, c] : clients)
    if ((!c.out.empty() || (!c.in.empty() && !c.feed && !c.waiting)) && now - c.progress > kLongestStall) c.dead = true;
}

void Server::State::sweep() {
  std::erase_if(clients, [this](const auto& entry) {
    if (!entry.second.dead) return false;
    ::close(entry.first);
    if (services) services->left(entry.second.caller.connection);
    return true;
  });
  for (auto& [fd, c] : clients) watch(c);
  client_count = static_cast<int>(clients.size());
}

bool Server::State::must_tick() const {
  return !accepting || std::ranges::any_of(clients, [](const auto& e) {
    const Client& c = e.second;
    return c.interest != EPOLLIN || c.feed || c.waiting || !c.in.empty();
  });
}

Server::Server(int listening, std::shared_ptr<Clock> clock, ServerOptions options) : state_(std::make_unique<State>()) {
  state_->listening = listening;
  state_->clock = std::move(clock);
  state_->options = std::move(options);
  state_->event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  state_->epoll = ::epoll_create1(EPOLL_CLOEXEC);
}

Server::~Server() {
  state_->feeds.clear();  // before what they wake
  for (const auto& [fd, c] : state_->clients) ::close(fd);
  close_fd(state_->epoll);
  close_fd(state_->event);
}

void Server::serve_also(Services& services) { state_->services = &services; }

void Server::add(const std::vector<std::shared_ptr<Sensor>>& sensors) {
  std::lock_guard lock(state_->mutex);
  for (const auto& sensor : sensors) {
    // A sensor that is slow by nature is not pressed by many clients; an early reading serves them better than a late.
    const auto least = std::max(state_->options.least_interval, sensor->info().interval / 4);
    state_->feeds.push_back(
        std::make_shared<Feed>(sensor, state_->clock, least, [state = state_.get()] { state->wake(); }));
  }
}

std::vector<std::shared_ptr<Feed>> Server::feeds() const {
  std::lock_guard lock(state_->mutex);
  return state_->feeds;
}

int Server::clients() const { return state_->client_count; }

Result<void> Server::run() {
  auto& s = *state_;
  if (s.event < 0 || s.epoll < 0) return tl::unexpected(errno_error("wait for", "clients", errno));
  for (const int fd : {s.listening, s.event}) {
    epoll_event e{EPOLLIN, {}};
    e.data.fd = fd;
    if (::epoll_ctl(s.epoll, EPOLL_CTL_ADD, fd, &e) != 0)
      return tl::unexpected(errno_error("wait for", "clients", errno));
  }
  std::array<epoll_event, 64> events;
  while (!s.stopping) {
    const int n = ::epoll_wait(s.epoll, events.data(), static_cast<int>(events.size()), s.must_tick() ? kTickMs : -1);
    if (n < 0 && errno != EINTR) return tl::unexpected(errno_error("wait for", "clients", errno));
    if (!s.accepting) s.listen(true);
    for (int i = 0; i < n; ++i) {
      const auto& e = events[static_cast<std::size_t>(i)];
      if (e.data.fd == s.listening) {
        s.accept_all();
      } else if (e.data.fd == s.event) {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto read = ::read(s.event, &count, sizeof(count));
      } else if (const auto it = s.clients.find(e.data.fd); it != s.clients.end()) {
        auto& c = it->second;
        if (e.events & (EPOLLERR | EPOLLHUP))
          c.dead = true;
        else if (e.events & EPOLLOUT)
          s.advance(c);
        else if (e.events & EPOLLIN)
          s.receive(c);
      }
    }
    s.take_answers();
    s.finish_readings();
    s.drop_stalled();
    s.sweep();
    if (s.client_count > kFewClients && !s.stopping) std::this_thread::sleep_for(kTogether);
  }
  return {};
}

void Server::stop() {
  state_->stopping = true;
  state_->wake();
}

}  // namespace ergometer::daemon
