// Child: a process of the engine: `ergometer run` with the command of a cell. It ends when the engine dies of anything,
// when its time is up, or when a signal asks the engine to stop. Used by the engine and for batch commands.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace ergometer {

struct ChildEnd {
  int exit_code = 0;  // 128 + N after signal N
  bool timed_out = false;
};

// Where `ergometer run` writes the watts of now (--live-fd).
inline constexpr int kLiveFd = 3;

class Child {
 public:
  // Runs words[0] (a path, no search) with our environment and `environment` on top, standard output and error appended
  // to `output`, no input. It leads a process group of its own. `in_child` is called before exec and must be
  // async-signal-safe; may be empty. `live_fd` becomes the child's kLiveFd; -1: none.
  [[nodiscard]] static Result<Child> start(const std::vector<std::string>& words,
                                           const std::map<std::string, std::string>& environment,
                                           const std::filesystem::path& output, const std::function<void()>& in_child,
                                           int live_fd = -1);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();  // kills what has not ended

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Waits for its end. `signal_fd` (a signalfd, or -1) tells signals: the first that asks to end is passed on and kept
  // in `stop`. After `time_out` it is asked to end, and killed if it does not. `tick` is called each `period`.
  [[nodiscard]] ChildEnd wait(int signal_fd, std::optional<int>& stop, std::optional<Nanos> time_out, Nanos period,
                              const std::function<void()>& tick);

 private:
  explicit Child(pid_t pid, int pid_fd) : pid_(pid), pid_fd_(pid_fd) {}
  pid_t pid_ = -1;
  int pid_fd_ = -1;
};

// The next signal that asks to end, if one has arrived; others are passed over.
[[nodiscard]] std::optional<int> stop_signal(int signal_fd);
// Sleeps until `length` is over or a signal asks to end, which is then kept in `stop`.
void sleep_unless_stopped(int signal_fd, std::optional<int>& stop, Nanos length);

// Whether PATH or the words themselves lead to a program.
[[nodiscard]] std::optional<std::filesystem::path> program_on_path(const std::string& name);
// Runs a short command to its end and returns its output. Errors: not_found; io with what it wrote if it failed.
[[nodiscard]] Result<std::string> output_of(const std::vector<std::string>& words,
                                            const std::function<void()>& in_child);

}  // namespace ergometer
