// What one client may cost the daemon. Used by its server and the documentation of its protocol.
#pragma once

#include <cstddef>

#include "base/units.hpp"

namespace ergometer::daemon {

// Requests a second of one connection, and how many it may save up.
inline constexpr double kRequestRate = 100;
inline constexpr double kRequestBurst = 200;
// A question is not left open for longer: it is answered with the rows that are there, else with an error.
inline constexpr Nanos kLongestReading = std::chrono::milliseconds(1500);
// A connection that neither takes its answer nor ends its line for so long is closed.
inline constexpr Nanos kLongestStall = std::chrono::seconds(10);
// With more clients than this the server looks at them together, so often: each time it is woken costs more than a question.
inline constexpr int kFewClients = 8;
inline constexpr Nanos kTogether = std::chrono::milliseconds(10);
// Rows and events kept of a sensor.
inline constexpr std::size_t kKept = 2048;

}  // namespace ergometer::daemon
