#include "run_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

extern char** environ;

namespace ergometer::cli {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::array kTerminating{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array kInforming{SIGUSR1, SIGUSR2, SIGWINCH};
constexpr Nanos kGrace = 5s;

Nanos now() { return Nanos(to_ns(SystemClock().now())); }

// Waits for a signal, at most until `deadline`.
void wait_for(const Signals& signals, Nanos deadline) {
  const auto left = std::max<Nanos>(deadline - now(), Nanos{0});
  const timespec timeout{static_cast<time_t>(left / 1s), static_cast<long>((left % 1s).count())};
  pollfd waiting{signals.fd(), POLLIN, 0};
  ::ppoll(&waiting, 1, &timeout, nullptr);
}

// Parent of each process, from the kernel's own table; empty without /proc.
std::vector<std::pair<pid_t, pid_t>> processes() {
  std::vector<std::pair<pid_t, pid_t>> all;
  for (const auto& name : list_dir("/proc")) {
    const auto pid = parse_int(name);
    if (!pid) continue;
    const auto stat = read_file(fs::path("/proc") / name / "stat");
    if (!stat) continue;  // ended meanwhile
    // The name in brackets may itself hold blanks and brackets: pid (name) state ppid ...
    const auto close = stat->rfind(')');
    if (close == std::string::npos) continue;
    const auto fields = split(std::string_view(*stat).substr(close + 1), ' ');
    const auto parent = fields.size() > 2 ? parse_int(fields[2]) : std::nullopt;
    if (parent) all.emplace_back(static_cast<pid_t>(*pid), static_cast<pid_t>(*parent));
  }
  return all;
}

std::vector<pid_t> descendants() {
  const auto all = processes();
  std::set<pid_t> tree{::getpid()};
  // A parent may have a larger number than its child, so repeat until nothing new joins.
  for (bool grown = true; grown;) {
    grown = false;
    for (const auto& [pid, parent] : all)
      if (tree.contains(parent)) grown |= tree.insert(pid).second;
  }
  tree.erase(::getpid());
  return {tree.begin(), tree.end()};
}

// One by one: our own group holds the tool and perhaps its caller's script.
void signal_tree(int signal, pid_t main) {
  auto tree = descendants();
  if (tree.empty() && main > 0) tree.push_back(main);
  for (const pid_t pid : tree) ::kill(pid, signal);
}

struct Pipe {
  int read = -1, write = -1;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return tl::unexpected(errno_error("create", "a pipe", errno));
  return Pipe{ends[0], ends[1]};
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (auto& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text(*entry);
    if (!added.contains(std::string(text.substr(0, text.find('='))))) all.emplace_back(text);
  }
  for (const auto& [name, value] : added) all.push_back(name + "=" + value);
  return all;
}

// What the child executes.
struct Image {
  std::string file;
  std::vector<std::string> argv, shell_argv, environment;
};

[[noreturn]] void become(Image& image, const Signals& signals, Command::Streams streams, int go, int status) {
  const auto argv = pointers(image.argv), shell_argv = pointers(image.shell_argv), env = pointers(image.environment);
  char byte;
  ssize_t n;
  do n = ::read(go, &byte, 1);
  while (n < 0 && errno == EINTR);
  if (n != 1) ::_exit(0);
  if (streams.out >= 0) ::dup2(streams.out, STDOUT_FILENO);
  if (streams.err >= 0) ::dup2(streams.err, STDERR_FILENO);
  signals.restore_inherited();
  ::execve(image.file.c_str(), argv.data(), env.data());
  // A script without "#!" is the shell's, as execvp and all shells have it.
  if (errno == ENOEXEC) ::execve("/bin/sh", shell_argv.data(), env.data());
  const int reason = errno;
  [[maybe_unused]] const auto told = ::write(status, &reason, sizeof reason);
  ::_exit(127);
}

}  // namespace

bool is_terminating(int signal) {
  return std::find(kTerminating.begin(), kTerminating.end(), signal) != kTerminating.end();
}

Result<fs::path> find_command(const std::string& name) {
  const auto usable = [](const fs::path& file) {
    struct stat st {};
    if (::stat(file.c_str(), &st) != 0) return errno == EACCES ? EACCES : ENOENT;
    return S_ISDIR(st.st_mode) || ::access(file.c_str(), X_OK) != 0 ? EACCES : 0;
  };
  const auto forbidden = [](const fs::path& file) {
    std::error_code ec;
    if (fs::is_directory(file, ec))
      return fail(ErrorCode::permission_denied, fmt::format("{} is a folder", file.string()), "name a program in it");
    return fail(ErrorCode::permission_denied, fmt::format("{} is not executable", file.string()),
                fmt::format("run: chmod +x {0}, or name its interpreter: ergometer run -- sh {0}", file.string()));
  };
  if (name.find('/') != std::string::npos) {
    const int error = usable(name);
    if (error == 0) return fs::path(name);
    if (error == EACCES) return forbidden(name);
    return fail(ErrorCode::not_found, fmt::format("{}: no such file", name), "check the path");
  }
  const char* path = std::getenv("PATH");
  std::optional<fs::path> refused;
  for (const auto folder : split(path ? path : "/usr/local/bin:/usr/bin:/bin", ':')) {
    const fs::path file = (folder.empty() ? fs::path(".") : fs::path(folder)) / name;
    const int error = name.empty() ? ENOENT : usable(file);
    if (error == 0) return file;
    std::error_code ec;
    if (error == EACCES && !refused && !fs::is_directory(file, ec)) refused = file;
  }
  if (refused) return forbidden(*refused);
  return fail(ErrorCode::not_found, fmt::format("{}: command not found", name),
              "check its name, or give its path, as in ./" + (name.empty() ? "program" : name));
}

Signals::Signals() {
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGCHLD);
  const auto add = [&](int signal) {
    struct sigaction current {};
    ::sigaction(signal, nullptr, &current);
    if (current.sa_handler != SIG_IGN) sigaddset(&ours, signal);
  };
  for (const int signal : kTerminating) add(signal);
  for (const int signal : kInforming) add(signal);
  pthread_sigmask(SIG_BLOCK, &ours, &inherited_mask_);
  // An ignored SIGCHLD would hide the command's status; a broken pipe of ours must not end the measurement.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &action, &inherited_child_);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, &inherited_pipe_);
  fd_ = ::signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

Signals::~Signals() { close_fd(fd_); }

std::optional<signalfd_siginfo> Signals::next() const {
  signalfd_siginfo info;
  if (::read(fd_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return info;
}

void Signals::restore_inherited() const {
  ::sigaction(SIGCHLD, &inherited_child_, nullptr);
  ::sigaction(SIGPIPE, &inherited_pipe_, nullptr);
  ::sigprocmask(SIG_SETMASK, &inherited_mask_, nullptr);
}

Command::Command(Command&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      go_fd_(std::exchange(other.go_fd_, -1)),
      status_fd_(std::exchange(other.status_fd_, -1)),
      end_(other.end_) {}

Command::~Command() {
  const bool waiting = go_fd_ >= 0;
  close_fd(go_fd_);
  close_fd(status_fd_);
  if (waiting && pid_ > 0 && !end_) ::waitpid(pid_, nullptr, 0);
}

Result<Command> Command::prepare(const fs::path& file, const std::vector<std::string>& argv,
                                 const std::map<std::string, std::string>& environment, const Signals& signals,
                                 Streams streams) {
  Image image{file.string(), argv, {"/bin/sh", file.string()}, merged_environment(environment)};
  image.shell_argv.insert(image.shell_argv.end(), argv.begin() + 1, argv.end());
  auto go = make_pipe();
  if (!go) return tl::unexpected(go.error());
  auto status = make_pipe();
  if (!status) return tl::unexpected(status.error());
  // What the command leaves behind becomes our child, so that it is found when it has to be ended.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(go->write);
    ::close(status->read);
    become(image, signals, streams, go->read, status->write);
  }
  ::close(go->read);
  ::close(status->write);
  Command command;
  command.pid_ = pid;
  command.go_fd_ = go->write;
  command.status_fd_ = status->read;
  if (pid < 0) return tl::unexpected(errno_error("start a process for", file, errno));
  return command;
}

Result<void> Command::begin() {
  [[maybe_unused]] const auto sent = ::write(go_fd_, "x", 1);
  close_fd(go_fd_);
  int reason = 0;
  ssize_t n;
  do n = ::read(status_fd_, &reason, sizeof reason);
  while (n < 0 && errno == EINTR);
  close_fd(status_fd_);
  if (n != static_cast<ssize_t>(sizeof reason)) return {};
  ::waitpid(pid_, nullptr, 0);
  end_ = CommandEnd{};
  Error error = errno_error("execute", "the command", reason);
  if (reason == ENOENT) error.hint = "the file exists, so its interpreter (first line after #!) is missing";
  return tl::unexpected(std::move(error));
}

void Command::handle(const signalfd_siginfo& info) {
  const int signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGWINCH && on_resize) on_resize();
  if (signal == SIGCHLD || signal == SIGWINCH || info.ssi_code == SI_KERNEL) return;
  if (is_terminating(signal)) {
    terminating_ = true;
    signal_tree(signal, end_ ? 0 : pid_);
  } else if (!end_) {
    // Workers of a program that handles these need not handle them as well, so they go to the program alone.
    ::kill(pid_, signal);
  }
}

bool Command::reap(bool& none_left) {
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    none_left = pid < 0 && errno == ECHILD;
    if (pid <= 0) return end_.has_value() || none_left;
    if (pid != pid_) continue;
    if (WIFSIGNALED(status))
      end_ = CommandEnd{128 + WTERMSIG(status), WTERMSIG(status)};
    else
      end_ = CommandEnd{WEXITSTATUS(status), std::nullopt};
  }
}

CommandEnd Command::wait(Signals& signals, Nanos period, const std::function<void()>& tick) {
  Nanos next_tick = now() + period;
  bool none_left = false;
  while (!reap(none_left)) {
    wait_for(signals, period > Nanos{0} ? next_tick : now() + 3600s);
    while (const auto info = signals.next()) handle(*info);
    if (period > Nanos{0} && now() >= next_tick) {
      tick();
      next_tick = now() + period;
    }
  }
  return end_.value_or(CommandEnd{});
}

void Command::end_tree(Signals& signals) {
  const Nanos killing = now() + kGrace;
  const Nanos giving_up = killing + 1s;
  bool none_left = false;
  while (terminating_ && now() < giving_up) {
    reap(none_left);
    if (none_left) return;
    if (now() >= killing) signal_tree(SIGKILL, 0);
    wait_for(signals, std::min(now() < killing ? killing : giving_up, now() + 50ms));
    while (const auto info = signals.next()) handle(*info);
  }
}

std::optional<int> sleep_or_signal(Signals& signals, Nanos length, Nanos period, const std::function<void()>& tick) {
  const Nanos end = now() + length;
  Nanos next_tick = now() + period;
  while (now() < end) {
    wait_for(signals, period > Nanos{0} ? std::min(end, next_tick) : end);
    while (const auto info = signals.next())
      if (is_terminating(static_cast<int>(info->ssi_signo))) return static_cast<int>(info->ssi_signo);
    if (period > Nanos{0} && now() >= next_tick) {
      tick();
      next_tick = now() + period;
    }
  }
  return std::nullopt;
}

}  // namespace ergometer::cli
