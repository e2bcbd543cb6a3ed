#include "device/command_control.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/text.hpp"

extern char** environ;

namespace ergometer {
namespace {

using std::chrono::milliseconds;
constexpr int kStepMs = 5, kPatienceMs = 30000;

// Exit status as waitpid gives it; -1: it did not end in time.
int wait_for(pid_t pid) {
  for (int waited = 0; waited < kPatienceMs; waited += kStepMs) {
    int status = 0;
    const pid_t done = ::waitpid(pid, &status, WNOHANG);
    if (done == pid) return status;
    if (done < 0 && errno != EINTR) return -1;
    std::this_thread::sleep_for(milliseconds(kStepMs));
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return -1;
}

class CommandControl final : public Control {
 public:
  CommandControl(std::shared_ptr<Control> inner, std::string command)
      : Control(inner->describe()), inner_(std::move(inner)), command_(std::move(command)) {
    info_.writers = "the command " + command_;
    info_.writable.reset();
  }

  Result<ControlValue> get() override { return inner_->get(); }
  Result<ControlValue> effective() override { return inner_->effective(); }
  void hold_while_setting(int fd) override { held_fd_ = fd; }
  Result<void> reset() override { return run("reset"); }
  Result<void> set(const ControlValue& value) override {
    auto text = to_text(value);
    std::erase(text, ' ');
    return run(text);
  }

 private:
  Result<void> run(const std::string& value) {
    std::vector<std::string> words;
    for (const auto word : split(command_, ' '))
      if (!word.empty()) words.emplace_back(word);
    if (words.empty()) return fail(ErrorCode::invalid_argument, "the command for setting limits is empty");
    words.insert(words.end(), {info_.name, info_.device_id, value});
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = 0;
    if (const int error = spawn(pid, argv.data()); error != 0)
      return fail(ErrorCode::not_found, fmt::format("cannot run {}: {}", words.front(), std::strerror(error)),
                  "--control-command names a program and its first arguments");
    const int status = wait_for(pid);
    if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    const auto how = status < 0          ? std::string("did not end in time")
                     : WIFEXITED(status) ? fmt::format("ended with {}", WEXITSTATUS(status))
                                         : fmt::format("was ended by signal {}", WTERMSIG(status));
    return fail(ErrorCode::permission_denied,
                fmt::format("cannot set {} to {}: `{}` {}", info_.name, value, command_, how),
                "ask the administrator which limits it may set; sudo needs -n and a rule without a password");
  }

  // In a process group of its own, so that Ctrl-C does not end it half-way. Its standard input is the guardian's pipe,
  // which it cannot read: sudo closes every other descriptor, and while it runs the guardian must wait.
  int spawn(pid_t& pid, char** argv) const {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    if (held_fd_ >= 0)
      ::posix_spawn_file_actions_adddup2(&files, held_fd_, STDIN_FILENO);
    else
      ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    sigset_t none;
    sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    const int error = ::posix_spawnp(&pid, argv[0], &files, &attributes, argv, environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    return error;
  }

  std::shared_ptr<Control> inner_;
  std::string command_;
  int held_fd_ = -1;
};

}  // namespace

std::shared_ptr<Control> set_by_command(std::shared_ptr<Control> control, const std::string& command) {
  return std::make_shared<CommandControl>(std::move(control), command);
}

}  // namespace ergometer
