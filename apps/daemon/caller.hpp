// Who asks, and how they are answered: what the server hands to the parts that answer by themselves. Used by Server,
// Services, ControlDesk and JobKeeper.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "daemon/access.hpp"

namespace ergometer::daemon {

struct Caller {
  std::uint64_t connection = 0;  // never used twice while the daemon runs
  Peer peer;
};

// Takes the answer, a line with its end. From any thread, once, also when the caller has gone.
using Answer = std::function<void(std::string line)>;

// One line for the daemon's log.
using Note = std::function<void(const std::string& text)>;

}  // namespace ergometer::daemon
