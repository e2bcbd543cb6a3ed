// What the daemon's tests share: a sensor that a test drives, a daemon on a thread over a temporary host root, and a
// client that says anything.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "daemon/listener.hpp"
#include "daemon/server.hpp"
#include "device/remote/protocol.hpp"
#include "device/remote/remote.hpp"
#include "support/temp_dir.hpp"

namespace ergometer::test {

// Counts its own reads: the n-th says n joules.
class CountingSensor final : public Sensor {
 public:
  explicit CountingSensor(std::string name = "rapl", std::vector<std::string> domains = {"package/0"})
      : Sensor({std::move(name), "rapl-powercap", {}, std::chrono::milliseconds(1), false, {}}) {
    for (const auto& domain : domains) {
      Channel c;
      c.column = file_name(domain) + "_energy_j";
      c.quantity = Quantity::energy;
      c.unit = "J";
      c.behaviour = Behaviour::counter;
      c.domain = domain;
      c.scope = Scope::package;
      c.method = Method::counter;
      info_.channels.push_back(c);
    }
  }
  Result<void> read(Readings& out) override {
    ++reads;
    while (blocked) ::usleep(1000);
    if (failing) return fail(ErrorCode::lost, "the counter is gone");
    for (int i = 0; i < events_each; ++i) out.event("rejected", "something");
    out.add(std::vector<std::optional<double>>(info_.channels.size(), reads.load()));
    return {};
  }
  std::atomic<int> reads{0};
  std::atomic<int> events_each{0};
  std::atomic<bool> failing{false}, blocked{false};

 private:
  static std::string file_name(std::string domain) {
    for (auto& c : domain)
      if (c == '/') c = '_';
    return domain;
  }
};

struct DaemonWorld : TempDir {
  explicit DaemonWorld(std::vector<std::shared_ptr<Sensor>> sensors = {}, daemon::ServerOptions options = fast()) {
    auto opened = daemon::Listener::open(socket(), {});
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    listener.emplace(std::move(*opened));
    server = std::make_unique<daemon::Server>(listener->fd(), host().clock, std::move(options));
    server->add(sensors);
    thread = std::thread([this] { EXPECT_TRUE(server->run()); });
  }
  ~DaemonWorld() { stop(); }
  void stop() {
    if (!thread.joinable()) return;
    server->stop();
    thread.join();
    server.reset();
    listener.reset();
  }
  static daemon::ServerOptions fast() {
    daemon::ServerOptions options;
    options.least_interval = std::chrono::milliseconds(1);
    options.version = "test";
    return options;
  }
  std::filesystem::path socket() const { return *this / remote::kSocket; }
  Host host() const { return Host::real(path()); }

  std::optional<daemon::Listener> listener;
  std::unique_ptr<daemon::Server> server;
  std::thread thread;
};

inline int connect_to(const std::filesystem::path& socket) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket.c_str(), sizeof(address.sun_path) - 1);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
  ::close(fd);
  return -1;
}

// A raw connection.
class Talker {
 public:
  explicit Talker(const std::filesystem::path& socket) : fd_(connect_to(socket)) { EXPECT_GE(fd_, 0); }
  ~Talker() { close_fd(fd_); }
  Talker(Talker&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  void say(std::string_view text) const { (void)!::send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  // Sends until the other side takes no more.
  void flood(std::string_view text) const {
    for (int i = 0; i < 100000 && ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0; ++i) {
    }
  }
  // The next line, "" at the end of the connection.
  std::string hear() {
    for (;;) {
      const auto end = in_.find('\n');
      if (end != std::string::npos) {
        auto line = in_.substr(0, end);
        in_.erase(0, end + 1);
        return line;
      }
      pollfd p{fd_, POLLIN, 0};
      if (::poll(&p, 1, 20000) <= 0) {
        ADD_FAILURE() << "no answer";
        return {};
      }
      char piece[4096];
      const auto n = ::recv(fd_, piece, sizeof(piece), 0);
      if (n <= 0) return {};
      in_.append(piece, static_cast<std::size_t>(n));
    }
  }
  bool is_greeted() { return remote::parse_greeting(hear()).has_value(); }

 private:
  int fd_;
  std::string in_;
};

}  // namespace ergometer::test
