#include "device/tool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr std::size_t kMostOutput = 1 << 20;

std::optional<std::string> find_program(const std::string& name, const Environment& environment) {
  if (name.find('/') != std::string::npos) return name;
  const auto set = environment.find("PATH");
  const std::string_view path = set == environment.end() ? std::string_view("/usr/bin:/bin") : set->second;
  for (const auto folder : split(path, ':')) {
    auto file = std::string(folder.empty() ? "." : folder) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (auto& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// Our threads block all signals; the program begins as from a shell.
int spawn(const std::string& file, std::vector<std::string> argv, std::vector<std::string> environment, int output,
          pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, 1);
  posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setsigdefault(&how, &all);
  posix_spawnattr_setpgroup(&how, 0);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int failed =
      ::posix_spawn(&pid, file.c_str(), &files, &how, pointers(argv).data(), pointers(environment).data());
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
  return failed;
}

}  // namespace

Result<Tool> Tool::start(const std::vector<std::string>& argv, const Environment& environment) {
  const auto file = find_program(argv.at(0), environment);
  if (!file) return fail(ErrorCode::not_found, fmt::format("the program {} is not there", argv[0]));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return tl::unexpected(errno_error("make a pipe for", *file, errno));
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  pid_t pid = -1;
  const int failed = spawn(*file, argv, std::move(variables), ends[1], pid);
  ::close(ends[1]);
  if (failed) {
    ::close(ends[0]);
    return tl::unexpected(errno_error("start", *file, failed));
  }
  return Tool(pid, ends[0]);
}

Tool::~Tool() { end(); }
Tool::Tool(Tool&& other) noexcept : pid_(std::exchange(other.pid_, -1)), fd_(std::exchange(other.fd_, -1)) {}
Tool& Tool::operator=(Tool&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(fd_, other.fd_);
  return *this;
}

void Tool::end() {
  if (fd_ >= 0) ::close(fd_);
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  fd_ = -1;
  pid_ = -1;
}

bool Tool::read(std::string& text, Nanos limit) {
  pollfd wait{fd_, POLLIN, 0};
  const auto ms = static_cast<int>(std::max<std::int64_t>(0, limit / 1ms));
  if (::poll(&wait, 1, ms) <= 0) return true;
  std::array<char, 4096> buffer{};
  const auto n = ::read(fd_, buffer.data(), buffer.size());
  if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

std::optional<int> Tool::exit_code(Nanos limit) {
  const auto deadline = Steady::now() + limit;
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(pid_, &status, WNOHANG);
    if (pid < 0) {
      pid_ = -1;  // collected by somebody else
      return std::nullopt;
    }
    if (pid > 0) {
      pid_ = -1;
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    if (Steady::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(1ms);
  }
}

Result<std::string> run_tool(const std::vector<std::string>& argv, const Environment& environment, Nanos limit) {
  auto tool = Tool::start(argv, environment);
  if (!tool) return tl::unexpected(tool.error());
  const auto deadline = Steady::now() + limit;
  std::string text;
  while (tool->read(text, deadline - Steady::now())) {
    if (text.size() > kMostOutput) return fail(ErrorCode::unavailable, argv[0] + " writes more than 1 MiB");
    if (Steady::now() >= deadline)
      return fail(ErrorCode::timeout, fmt::format("{} does not end within {:g} s", argv[0], seconds(limit)));
  }
  const auto code = tool->exit_code(100ms);
  if (code && *code != 0) return fail(ErrorCode::unavailable, fmt::format("{} ends with {}", argv[0], *code));
  return text;
}

}  // namespace ergometer
