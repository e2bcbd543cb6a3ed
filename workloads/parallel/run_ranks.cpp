#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <ostream>

#include "core/processors.hpp"
#include "parallel/rank.hpp"

extern char** environ;

namespace ergometer::workload {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostRanks = 1024;
constexpr std::chrono::seconds kPatience{5};     // between SIGTERM and SIGKILL
constexpr std::chrono::milliseconds kTick{100};  // how often the patience is looked at

Error failed(const char* what) { return {Fault::data, fmt::format("--ranks: {}: {}", what, std::strerror(errno)), {}}; }

// A port of this machine that is free now. Another process could take it before rank 0 does; then rank 0 says so.
Result<int> free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return failed("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool bound = ::bind(fd, generic, length) == 0 && ::getsockname(fd, generic, &length) == 0;
  const int reason = errno;
  ::close(fd);
  errno = reason;
  if (!bound) return failed("bind");
  return static_cast<int>(ntohs(address.sin_port));
}

// Without `--ranks N` and `--ranks=N`.
std::vector<std::string> without_ranks(const std::vector<std::string>& arguments) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--ranks") {
      ++i;
    } else if (arguments[i].rfind("--ranks=", 0) != 0) {
      kept.push_back(arguments[i]);
    }
  }
  return kept;
}

// This process's environment with the ranks' variables in the place of any that were there.
std::vector<std::string> environment(int rank, int size, int port) {
  std::vector<std::string> added = {fmt::format("RANK={}", rank),
                                    fmt::format("WORLD_SIZE={}", size),
                                    fmt::format("LOCAL_RANK={}", rank),
                                    fmt::format("LOCAL_WORLD_SIZE={}", size),
                                    "MASTER_ADDR=127.0.0.1",
                                    fmt::format("MASTER_PORT={}", port),
                                    "ERGOMETER_LAUNCHER=--ranks"};
  if (!std::getenv("OMP_NUM_THREADS")) {
    added.push_back(fmt::format("OMP_NUM_THREADS={}", std::max(1, usable_processors() / size)));
  }
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "=") + 1);
    const bool replaced =
        std::any_of(added.begin(), added.end(), [&](const std::string& text) { return text.rfind(name, 0) == 0; });
    if (!replaced) all.emplace_back(*entry);
  }
  all.insert(all.end(), added.begin(), added.end());
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// The signals that this process waits for instead of being interrupted; ranks get the mask that was.
class BlockedSignals {
 public:
  BlockedSignals() {
    ::sigemptyset(&set_);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) ::sigaddset(&set_, signal);
    ::sigprocmask(SIG_BLOCK, &set_, &previous_);
  }
  ~BlockedSignals() { ::sigprocmask(SIG_SETMASK, &previous_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  const sigset_t& previous() const { return previous_; }
  // The next signal, or nothing after a tick.
  std::optional<siginfo_t> wait() const {
    siginfo_t info{};
    timespec tick{};
    tick.tv_nsec = std::chrono::nanoseconds(kTick).count();
    if (::sigtimedwait(&set_, &info, &tick) < 0) return std::nullopt;
    return info;
  }

 private:
  sigset_t set_{};
  sigset_t previous_{};
};

struct Child {
  pid_t process = 0;
  bool running = false;
  int status = 0;  // of waitpid
};

std::string end_of(const Child& child) {
  if (WIFSIGNALED(child.status)) {
    const int signal = WTERMSIG(child.status);
    return fmt::format("was ended by signal {} ({})", signal, ::strsignal(signal));
  }
  return fmt::format("ended with exit code {}", WEXITSTATUS(child.status));
}

int exit_code(const Child& child) {
  return WIFSIGNALED(child.status) ? 128 + WTERMSIG(child.status) : WEXITSTATUS(child.status);
}

class Ranks {
 public:
  explicit Ranks(std::ostream& notes) : notes_(notes) {}
  ~Ranks() { end_all(SIGKILL); }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  Result<Done> start(int size, const std::vector<std::string>& arguments) {
    const auto port = free_port();
    if (!port) return port.error();
    std::vector<std::string> words = {program_path()};
    const std::vector<std::string> kept = without_ranks(arguments);
    words.insert(words.end(), kept.begin(), kept.end());
    for (int rank = 0; rank < size; ++rank) {
      std::vector<std::string> variables = environment(rank, size, *port);
      const std::vector<char*> argv = pointers(words);
      const std::vector<char*> envp = pointers(variables);
      const pid_t parent = ::getpid();
      const pid_t process = ::fork();
      if (process < 0) return failed("fork");
      if (process == 0) become(rank, parent, argv.data(), envp.data());
      children_.push_back({process, true, 0});
    }
    return Done{};
  }

  // Until none runs; the exit code.
  int wait() {
    while (reap()) {
      if (deadline_ && Clock::now() >= *deadline_) end_all(SIGKILL);
      if (const auto info = signals_.wait()) pass_on(*info);
    }
    return code_;
  }

 private:
  static std::string program_path() {
    std::string path(4096, '\0');
    const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
    path.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    return path;
  }

  // In the new process, up to execve: only functions that are safe after fork.
  [[noreturn]] void become(int rank, pid_t parent, char* const* argv, char* const* envp) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it ended before the line above
    ::sigprocmask(SIG_SETMASK, &signals_.previous(), nullptr);
    if (rank > 0) ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execve("/proc/self/exe", argv, envp);
    ::_exit(127);
  }

  // Notes which ranks have ended since; whether one still runs.
  bool reap() {
    std::vector<std::size_t> ended_badly;
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      Child& child = children_[rank];
      if (!child.running || ::waitpid(child.process, &child.status, WNOHANG) != child.process) continue;
      child.running = false;
      if (exit_code(child) != 0) ended_badly.push_back(rank);
    }
    if (!ended_badly.empty() && !deadline_) first_failure(ended_badly);
    return std::any_of(children_.begin(), children_.end(), [](const Child& child) { return child.running; });
  }

  // Where several ended at once, those with an exit code may have failed since they lost the one that a signal ended.
  void first_failure(const std::vector<std::size_t>& ranks) {
    const auto by_signal =
        std::find_if(ranks.begin(), ranks.end(), [&](std::size_t rank) { return WIFSIGNALED(children_[rank].status); });
    code_ = exit_code(children_[by_signal == ranks.end() ? ranks.front() : *by_signal]);
    for (const std::size_t rank : ranks) {
      notes_ << fmt::format("rank {} (process {}) {}\n", rank, children_[rank].process, end_of(children_[rank]));
    }
    notes_ << std::flush;
    end_all(SIGTERM);
    deadline_ = Clock::now() + kPatience;
  }

  void end_all(int signal) {
    for (const Child& child : children_) {
      if (child.running) ::kill(child.process, signal);
    }
  }

  // The terminal's Ctrl-C reaches the ranks without us: they are of the same process group.
  void pass_on(const siginfo_t& info) {
    if (info.si_signo != SIGCHLD && info.si_code <= 0) end_all(info.si_signo);
  }

  std::ostream& notes_;
  BlockedSignals signals_;
  std::vector<Child> children_;
  std::optional<Clock::time_point> deadline_;  // since one failed: until SIGKILL
  int code_ = 0;
};

}  // namespace

Result<int> run_ranks(int ranks, const std::vector<std::string>& arguments, std::ostream& notes) {
  if (ranks < 1 || ranks > kMostRanks) {
    return Error{Fault::usage, fmt::format("--ranks {} is not a number from 1 to {}", ranks, kMostRanks), {}};
  }
  const auto already = rank_from_environment();
  if (!already) return already.error();
  if (already->size > 1) {
    return Error{
        Fault::usage,
        fmt::format("--ranks within {}: this process is one of {} ranks already", already->launcher, already->size),
        "leave out --ranks, or start the program without that launcher"};
  }
  Ranks running(notes);
  if (auto started = running.start(ranks, arguments); !started) return started.error();
  return running.wait();
}

}  // namespace ergometer::workload
