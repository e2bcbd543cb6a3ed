// Other programs that a sensor asks: one run with a time limit, and a child whose lines are read as they come. Used by
// the slurm and meter backends.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace ergometer {

// A running program in a process group of its own, its standard output ours, no standard input, no standard error.
// Its group is killed when this ends. Not thread-safe.
class Tool {
 public:
  // argv[0] is a path, or a name looked up in PATH of `environment`. Errors: not_found, io.
  static Result<Tool> start(const std::vector<std::string>& argv, const Environment& environment);
  ~Tool();
  Tool(Tool&& other) noexcept;
  Tool& operator=(Tool&& other) noexcept;

  // Waits up to `limit` for output and appends what is there to `text`. False at the end of the output.
  bool read(std::string& text, Nanos limit);
  // After the end of the output: the exit code, 128 + N after signal N; unset if it does not end within `limit`, or if
  // somebody else in this process collected it.
  std::optional<int> exit_code(Nanos limit);

 private:
  Tool(pid_t pid, int fd) : pid_(pid), fd_(fd) {}
  void end();
  pid_t pid_ = -1;
  int fd_ = -1;
};

// Standard output of a program that ends by itself. Errors: not_found, timeout (it was killed), unavailable (it failed,
// or wrote more than 1 MiB).
[[nodiscard]] Result<std::string> run_tool(const std::vector<std::string>& argv, const Environment& environment,
                                           Nanos limit);

}  // namespace ergometer
