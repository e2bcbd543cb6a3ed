// EpochMarks: regions `epoch[k]` from the lines that a command prints, for programs that nobody wants to change
// (--epoch-regex). Written as a marker file into the run, so that a killed tool leaves them readable. Used by run.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace ergometer::cli {

// start: a matching line begins an epoch, which lasts until the next one or the command's end.
// end: a matching line ends the epoch that began at the one before it, or at the command's start.
enum class EpochAt { start, end };

class EpochMarks {
 public:
  // `pattern` is an ECMAScript regular expression, searched in each line. If its first group is a whole number, that is
  // k; else epochs are counted from 0. A line that repeats the number of the epoch before it (a progress bar that
  // redraws itself) is no new one. Error: invalid_argument that names the place in the pattern.
  [[nodiscard]] static Result<std::unique_ptr<EpochMarks>> create(const std::string& pattern, EpochAt at);
  ~EpochMarks();

  // The command begins: epochs are recorded into `run_dir` as regions of process `pid`.
  [[nodiscard]] Result<void> begin(const std::filesystem::path& run_dir, int pid, MonoTime t);
  // A line that was printed at `t`, without its line end. Any thread. Only its first 4,096 bytes are looked at.
  void line(std::string_view text, MonoTime t);
  void end(MonoTime t);

 private:
  struct State;
  explicit EpochMarks(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Cuts a stream into lines at '\n' and at '\r', with which progress bars redraw.
class LineCutter {
 public:
  template <class Take>
  void add(std::string_view bytes, const Take& take) {
    for (const char c : bytes) {
      if (c != '\n' && c != '\r') {
        if (line_.size() < kLongest) line_ += c;
      } else if (!line_.empty()) {
        take(std::string_view(line_));
        line_.clear();
      }
    }
  }
  // A last line without its end.
  template <class Take>
  void finish(const Take& take) {
    if (!line_.empty()) take(std::string_view(line_));
    line_.clear();
  }

 private:
  static constexpr std::size_t kLongest = 4096;
  std::string line_;
};

}  // namespace ergometer::cli
