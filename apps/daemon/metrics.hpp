// The Prometheus endpoint: what the feeds read, as counters in joules and gauges in watts. Used by main.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "daemon/server.hpp"

namespace ergometer::daemon {

class MetricsEndpoint {
 public:
  // Serves http://ADDRESS/metrics until it dies; `server` outlives it. Each scrape asks the sensors, but never twice in
  // a second. Errors: io, where the address cannot be had.
  [[nodiscard]] static Result<std::unique_ptr<MetricsEndpoint>> open(const std::string& address, const Server& server,
                                                                     const std::string& version);
  ~MetricsEndpoint();
  // The port it listens on: another than asked for where that was 0.
  [[nodiscard]] int port() const;

 private:
  struct State;
  explicit MetricsEndpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ergometer::daemon
