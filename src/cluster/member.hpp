// Member: what one rank on a node tells the process that measures the node, as a small file. Used by the election.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/result.hpp"

namespace ergometer {

struct Member {
  std::optional<int> rank;
  int pid = 0;                         // of its `ergometer run`: the measured processes are below it
  std::string pid_namespace;           // in which that number counts
  std::string node;                    // the name by which this rank knows the node
  Environment devices;                 // variables that decide which devices it may use
  std::optional<MonoTime> begin, end;  // of its command
  std::optional<int> exit_code, signal;
  std::optional<double> cpu_s;  // user and system time of its command and everything that it waited for
  // Not in the file:
  bool lives = false;  // whether the process still holds its lock
  bool own = false;    // the reader's own
};

// This process, without a command yet.
[[nodiscard]] Member this_member(std::optional<int> rank, std::string node, const Environment& environment);

[[nodiscard]] std::string member_to_json(const Member& member);
[[nodiscard]] Result<Member> member_from_json(std::string_view text, const std::string& source);

}  // namespace ergometer
