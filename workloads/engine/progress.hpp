// One line that tells how far the work is and rewrites itself, for a terminal. Used by training and inference.
#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>

namespace ergometer::workload {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // Not `on`: every function does nothing. `unit`: plural of a sample.
  Progress(std::ostream& out, bool on, std::string unit) : out_(out), on_(on), unit_(std::move(unit)) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // A piece of work with `steps` steps begins, shown as `name`.
  void start(std::string name, std::int64_t steps);
  // Shows the line, at most five times a second.
  void advance(std::int64_t steps_done, std::int64_t samples_done);
  // Removes the line, so that other output can follow.
  void clear();

 private:
  std::ostream& out_;
  const bool on_;
  const std::string unit_;
  std::string name_;
  std::int64_t steps_ = 0;
  std::size_t shown_ = 0;  // length of the line on the terminal
  Clock::time_point began_;
  Clock::time_point last_;
};

}  // namespace ergometer::workload
