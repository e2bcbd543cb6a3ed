// Feed: one sensor of the daemon, read on a thread of its own when somebody asks and never otherwise; what was read
// stands in a bounded ring that all clients share. Used by Server and Metrics.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "device/remote/protocol.hpp"
#include "device/sensor.hpp"

namespace ergometer::daemon {

// All functions may be called from any thread and none waits for the sensor but wait().
class Feed {
 public:
  // Reads at most once in `least_interval`, whoever asks. `on_reading` is called on the feed's thread after each
  // reading and must outlive the feed's last one.
  Feed(std::shared_ptr<Sensor> sensor, std::shared_ptr<Clock> clock, Nanos least_interval,
       std::function<void()> on_reading);
  // Leaves a thread that hangs in its sensor behind.
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  [[nodiscard]] const SensorInfo& info() const;
  // Asks for a reading that begins after this call; the ticket tells it from others.
  [[nodiscard]] std::uint64_t ask();
  // Whether the reading of a ticket is over.
  [[nodiscard]] bool is_done(std::uint64_t ticket) const;
  // is_done() after at most `patience`.
  bool wait(std::uint64_t ticket, Nanos patience) const;
  // Where the next row will stand.
  [[nodiscard]] std::uint64_t end() const;
  // Rows and events from `cursor` on, as many as fit one reply.
  [[nodiscard]] remote::Batch from(std::uint64_t cursor) const;
  // What the last reading said, if it failed.
  [[nodiscard]] std::optional<Error> failure() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ergometer::daemon
