// Server: answers clients on one thread that never waits for any of them or for a sensor. Used by main and the tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/access.hpp"
#include "daemon/feed.hpp"
#include "daemon/services.hpp"

namespace ergometer::daemon {

struct ServerOptions {
  People readers;
  int max_clients = 512;
  Nanos least_interval = std::chrono::milliseconds(50);  // between readings of one sensor
  std::string version;
};

class Server {
 public:
  // `listening`: a non-blocking listening Unix socket that outlives the server.
  Server(int listening, std::shared_ptr<Clock> clock, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // What is asked beside readings goes to `services`, which outlives run(). Before run(); without it such questions are
  // refused.
  void serve_also(Services& services);
  // From any thread, also while run() runs.
  void add(const std::vector<std::shared_ptr<Sensor>>& sensors);
  [[nodiscard]] std::vector<std::shared_ptr<Feed>> feeds() const;
  [[nodiscard]] int clients() const;
  // Serves until stop(). Errors: io, if the system gives no descriptors for it.
  [[nodiscard]] Result<void> run();
  // From any thread or a signal handler.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergometer::daemon
