// The command's standard output and error on their way through the tool, byte for byte and in order a stream, while its
// lines are looked at. Only with --epoch-regex; otherwise the command inherits the streams themselves. Used by run.
#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace ergometer::cli {

// One stream: a terminal of its own if ours is one, so that the command still sees a terminal; else a pipe.
class Passthrough {
 public:
  using TakeLine = std::function<void(std::string_view line, MonoTime t)>;
  using BeforeWrite = std::function<void(std::string_view bytes)>;

  // `target` is our descriptor, 1 or 2.
  [[nodiscard]] static Result<Passthrough> create(int target);
  Passthrough(Passthrough&& other) noexcept;
  ~Passthrough();

  // The end for the command; closed by start().
  [[nodiscard]] int command_end() const { return command_fd_; }
  // Starts the copying thread, after the command's process was made. `take` is called on that thread,
  // and, if the stream is a terminal, `before_write` with what will be shown on it.
  void start(TakeLine take, BeforeWrite before_write);
  // After the command's end: copies what it had written, then returns. What still holds the stream (a process that the
  // command left behind) is served by a small process that lives as long as it.
  void finish();
  // The terminal of the command takes the size of ours.
  void resize() const;

 private:
  Passthrough() = default;
  void copy(const TakeLine& take, const BeforeWrite& before_write);
  int target_ = -1, command_fd_ = -1, tool_fd_ = -1;
  int wake_[2] = {-1, -1};  // written once by finish()
  bool terminal_ = false;
  bool ended_ = false;  // end of file was seen, or the target is gone
  std::thread thread_;
};

}  // namespace ergometer::cli
