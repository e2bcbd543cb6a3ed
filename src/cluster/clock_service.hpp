// The clock of one node of a run, offered to the others over TCP while the run goes on, so that they can tell how their
// CLOCK_MONOTONIC lies against it. Messages are answered to those only who know a secret of the run, which is in a file
// beside the run that its owner alone can read. Used by ClockWatch and by the process that measures a node.
//
//   there: "ergometer-clock/1 ASKER\n"      back: "ANSWERER\n"           once; the two halves of the secret
//   there: 8 bytes of the asker's choice    back: the same 8 bytes, then nanoseconds of CLOCK_MONOTONIC (8, big endian)
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "model/place.hpp"

namespace ergometer {

// How to reach a clock; RUN/clock.json.
struct ClockAddress {
  std::string machine_clock;           // Machine::clock() of the node: who has the same need not ask
  std::vector<std::string> addresses;  // of the node's interfaces, IPv4 and IPv6
  int port = 0;
  std::string asker, answerer;  // the secret
};

[[nodiscard]] std::string clock_address_to_json(const ClockAddress& address);
// Writes the file atomically, readable for its owner alone: the secret is in it.
[[nodiscard]] Result<void> write_clock_address(const std::filesystem::path& file, const ClockAddress& address);
[[nodiscard]] Result<ClockAddress> clock_address_from_json(std::string_view text, const std::string& source);

class ClockServer {
 public:
  // Listens on all interfaces, at a free port; answers once serve() is called. Errors: io (no network).
  [[nodiscard]] static Result<std::unique_ptr<ClockServer>> open(std::string machine_clock);
  ~ClockServer();
  ClockServer(const ClockServer&) = delete;
  ClockServer& operator=(const ClockServer&) = delete;
  [[nodiscard]] const ClockAddress& address() const;
  // Starts the thread that answers, with every signal blocked in it.
  void serve(std::shared_ptr<Clock> clock);

 private:
  struct State;
  explicit ClockServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Some tens of messages there and back; of these the one with the least way decides: the offset is the server's time
// less the middle of asking and being answered, its error half of that way, whichever direction took longer (as in NTP,
// RFC 5905, section 8). Takes milliseconds, at most `patience`. Errors: timeout or unavailable (nobody answers there);
// corrupt (somebody else answers).
[[nodiscard]] Result<ClockOffset> ask_clock(const ClockAddress& address, Clock& clock, Nanos patience);

}  // namespace ergometer
