#include "study/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// `ergometer run` gives a tree 5 s to end and then kills it.
constexpr Nanos kGraceTime = 15s;

bool asks_to_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (auto& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

Nanos now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(now.tv_sec) + Nanos(now.tv_nsec);
}

int poll_ms(Nanos length) {
  return static_cast<int>(std::clamp<std::int64_t>((length.count() + 999'999) / 1'000'000, 0, 3'600'000));
}

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment,
                           const fs::path& output, const std::function<void()>& in_child, int live_fd) {
  auto all = current_environment();
  for (const auto& [name, value] : environment) all[name] = value;
  std::vector<std::string> arguments = words, variables;
  for (const auto& [name, value] : all) variables.push_back(name + "=" + value);
  auto argv = pointers(arguments);
  auto envp = pointers(variables);
  int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (out < 0) return tl::unexpected(errno_error("open", output, errno));
  int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (in_child) in_child();
    if (::getppid() != parent) ::_exit(128 + SIGTERM);  // it died before the request above
    if (::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(out, 2) < 0) ::_exit(126);
    // dup2 onto itself would keep the close-on-exec flag.
    if (live_fd >= 0 && (live_fd == kLiveFd ? ::fcntl(kLiveFd, F_SETFD, 0) : ::dup2(live_fd, kLiveFd)) < 0) ::_exit(126);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  const int error = errno;
  close_fd(out);
  close_fd(in);
  if (pid < 0) return tl::unexpected(errno_error("start", words.front(), error));
  ::setpgid(pid, pid);  // whoever is first
  const int pid_fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  return Child(pid, pid_fd);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pid_fd_(std::exchange(other.pid_fd_, -1)) {}

Child::~Child() {
  close_fd(pid_fd_);
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

ChildEnd Child::wait(int signal_fd, std::optional<int>& stop, std::optional<Nanos> time_out, Nanos period,
                     const std::function<void()>& tick) {
  ChildEnd end;
  const Nanos begin = now_ns();
  std::optional<Nanos> kill_at;
  Nanos next_tick = begin + period;
  const auto ask_to_end = [&](int signal) {
    if (kill_at) return;
    ::kill(pid_, signal);
    kill_at = now_ns() + kGraceTime;
  };
  if (stop) ask_to_end(*stop);
  for (;;) {
    int status = 0;
    const pid_t reaped = ::waitpid(pid_, &status, WNOHANG);
    if (reaped == pid_ || (reaped < 0 && errno == ECHILD)) {
      end.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      break;
    }
    const Nanos now = now_ns();
    if (time_out && !kill_at && now - begin >= *time_out) {
      end.timed_out = true;
      ask_to_end(SIGTERM);
    }
    if (kill_at && now >= *kill_at) ::kill(-pid_, SIGKILL);
    if (period > Nanos{0} && now >= next_tick) {
      if (tick) tick();
      next_tick = now + period;
    }
    Nanos wait_for = pid_fd_ >= 0 ? 1s : 5ms;
    if (period > Nanos{0}) wait_for = std::min(wait_for, next_tick - now);
    if (time_out && !kill_at) wait_for = std::min(wait_for, begin + *time_out - now);
    pollfd fds[2] = {{pid_fd_, POLLIN, 0}, {signal_fd, POLLIN, 0}};
    ::poll(fds, 2, poll_ms(wait_for));
    if (const auto signal = stop_signal(signal_fd)) {
      stop = signal;
      ask_to_end(*signal);
    }
  }
  // What the command left running in our group would disturb the next run.
  ::kill(-pid_, SIGKILL);
  pid_ = -1;
  return end;
}

std::optional<int> stop_signal(int signal_fd) {
  if (signal_fd < 0) return std::nullopt;
  signalfd_siginfo info{};
  for (;;) {
    pollfd fd{signal_fd, POLLIN, 0};
    if (::poll(&fd, 1, 0) <= 0 || ::read(signal_fd, &info, sizeof info) != static_cast<ssize_t>(sizeof info))
      return std::nullopt;
    if (asks_to_end(static_cast<int>(info.ssi_signo))) return static_cast<int>(info.ssi_signo);
  }
}

void sleep_unless_stopped(int signal_fd, std::optional<int>& stop, Nanos length) {
  const Nanos until = now_ns() + length;
  while (!stop) {
    const Nanos left = until - now_ns();
    if (left <= Nanos{0}) return;
    pollfd fd{signal_fd, POLLIN, 0};
    ::poll(&fd, 1, poll_ms(left));
    stop = stop_signal(signal_fd);
  }
}

std::optional<fs::path> program_on_path(const std::string& name) {
  if (name.find('/') != std::string::npos)
    return ::access(name.c_str(), X_OK) == 0 ? std::optional<fs::path>(name) : std::nullopt;
  const char* path = std::getenv("PATH");
  for (const auto folder : split(path ? path : "/usr/local/bin:/usr/bin:/bin", ':')) {
    const auto file = fs::path(folder.empty() ? "." : std::string(folder)) / name;
    std::error_code ec;
    if (fs::is_regular_file(file, ec) && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

Result<std::string> output_of(const std::vector<std::string>& words, const std::function<void()>& in_child) {
  const auto program = program_on_path(words.front());
  if (!program)
    return fail(ErrorCode::not_found, fmt::format("there is no program {} on the PATH", words.front()),
                "install it, or run the study elsewhere: --executor here");
  std::string name = (fs::temp_directory_path() / "ergometer-output-XXXXXX").string();
  int fd = ::mkstemp(name.data());
  if (fd < 0) return tl::unexpected(errno_error("create", name, errno));
  close_fd(fd);
  auto command = words;
  command.front() = program->string();
  auto child = Child::start(command, {}, name, in_child);
  std::optional<int> stop;
  ChildEnd end;
  if (child) end = child->wait(-1, stop, 60s, Nanos{0}, {});
  auto text = read_file(name);
  ::unlink(name.c_str());
  if (!child) return tl::unexpected(child.error());
  if (!text) return text;
  if (end.exit_code != 0)
    return fail(ErrorCode::io,
                fmt::format("{} ended with {}: {}", fmt::join(words, " "), end.exit_code, trim(*text).substr(0, 500)),
                "look at what it says");
  return text;
}

}  // namespace ergometer
