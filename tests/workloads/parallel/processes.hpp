// Starts programs with changed environments, their output in files, and ends what still runs. Used by the tests of
// several ranks.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/temp_dir.hpp"

namespace ergometer::test {

class Process {
 public:
  // `name` is that of the files of its output in `folder`.
  Process(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment,
          const TempDir& folder, const std::string& name)
      : out_((folder / (name + ".out")).string()), err_((folder / (name + ".err")).string()) {
    process_ = ::fork();
    if (process_ != 0) return;
    for (const auto& [key, value] : environment) ::setenv(key.c_str(), value.c_str(), 1);
    ::dup2(::open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDOUT_FILENO);
    ::dup2(::open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDERR_FILENO);
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv.front(), argv.data());
    ::_exit(127);
  }
  ~Process() {
    if (process_ > 0 && !ended_) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, &status_, 0);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return process_; }
  // Exit code, 128 + signal, or -1 where it runs on after `seconds`.
  int wait(double seconds = 120) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!ended_ && std::chrono::steady_clock::now() < deadline) {
      ended_ = ::waitpid(process_, &status_, WNOHANG) == process_;
      if (!ended_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (!ended_) return -1;
    return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
  }
  std::string out() const { return content(out_); }
  std::string err() const { return content(err_); }

 private:
  static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string out_, err_;
  pid_t process_ = 0;
  bool ended_ = false;
  int status_ = 0;
};

// Until `done` holds; whether it did within `seconds`.
template <class Condition>
bool eventually(Condition&& done, double seconds = 120) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!done()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace ergometer::test
