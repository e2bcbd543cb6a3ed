// The measured command as a process: found along PATH, forked before anything else runs, let go when the measurement is
// ready, given every signal that is meant for it, and waited for. Used by run alone.
//
// The command stays in the tool's own process group, so that job control, Ctrl-C and background reads work as without
// the tool. Signals that the terminal raises reach the command by themselves; those that a process sends to the tool
// are passed on.
#pragma once

#include <sys/signalfd.h>
#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace ergometer::cli {

// The file that a shell would execute for `name`. Errors: not_found (exit 127), permission_denied (exit 126).
[[nodiscard]] Result<std::filesystem::path> find_command(const std::string& name);

// Blocks the signals that end or inform a program, and SIGCHLD, in this thread and those it starts from now on, and
// reads them from a descriptor. Signals that were ignored (nohup) stay ignored. One a process; lives until its end.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  [[nodiscard]] int fd() const { return fd_; }
  // The next signal that has arrived, if any.
  [[nodiscard]] std::optional<signalfd_siginfo> next() const;
  // In a child before exec: dispositions and mask as this process inherited them. Async-signal-safe.
  void restore_inherited() const;

 private:
  int fd_ = -1;
  sigset_t inherited_mask_;
  struct sigaction inherited_pipe_, inherited_child_;
};

// One of those that end a program and are passed on to the command's whole tree.
[[nodiscard]] bool is_terminating(int signal);

struct CommandEnd {
  int exit_code = 0;  // 128 + N after signal N
  std::optional<int> signal;
};

class Command {
 public:
  struct Streams {
    int out = -1, err = -1;  // descriptors that become 1 and 2 of the command; -1: inherited
  };

  // Forks at once (before any thread is started); the child waits for begin(). `environment` is added to our own.
  [[nodiscard]] static Result<Command> prepare(const std::filesystem::path& file, const std::vector<std::string>& argv,
                                               const std::map<std::string, std::string>& environment,
                                               const Signals& signals, Streams streams);
  Command(Command&& other) noexcept;
  // Cancels a command that never began.
  ~Command();

  // Lets the child execute the command. Error: what exec answered.
  [[nodiscard]] Result<void> begin();
  [[nodiscard]] pid_t pid() const { return pid_; }

  // Waits for the end of the command. `tick` is called each `period` (never if 0).
  [[nodiscard]] CommandEnd wait(Signals& signals, Nanos period, const std::function<void()>& tick);
  // After a terminating signal was passed on: gives what is left of the tree 5 s to end, then kills it. Without such a
  // signal nothing happens, and what the command left running goes on.
  void end_tree(Signals& signals);
  // Called when the terminal changes its size.
  std::function<void()> on_resize;

 private:
  Command() = default;
  void handle(const signalfd_siginfo& signal);
  // Reaps all that have ended; true once the command itself has. `none_left`: no descendant is alive.
  bool reap(bool& none_left);

  pid_t pid_ = -1;
  int go_fd_ = -1;      // a byte lets the child go; end of file ends it
  int status_fd_ = -1;  // carries errno of a failed exec
  std::optional<CommandEnd> end_;
  bool terminating_ = false;
};

// Sleeps for `length`, or until a terminating signal arrives: then its number.
[[nodiscard]] std::optional<int> sleep_or_signal(Signals& signals, Nanos length, Nanos period,
                                                 const std::function<void()>& tick);

}  // namespace ergometer::cli
