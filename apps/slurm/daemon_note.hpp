// Tells ergometerd on this node that a job begins or ends (docs/daemon-protocol.md). Used by plugin.cpp as root.
#pragma once

#include <string>

namespace ergometer::spank {

inline constexpr const char* kDaemonSocket = "/run/ergometer/ergometerd.sock";

struct JobNote {
  std::string job;  // Slurm's number
  unsigned uid = 0;
  std::string user;  // "" if the number has no name
  bool exclusive = false;
};

// One line of the protocol.
[[nodiscard]] std::string begin_line(const JobNote& note);
[[nodiscard]] std::string end_line(const std::string& job);

// Sends a line and reads the answer. Waits for at most half a second in all. Returns what went wrong; "" if nothing
// did, or if there is no daemon here.
[[nodiscard]] std::string tell_daemon(const std::string& socket, const std::string& line);

}  // namespace ergometer::spank
