#include "sampler.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

namespace ergometer::spank {
namespace {

constexpr int kEndFd = 3, kReadyFd = 4;  // of the sampler
constexpr int kPatienceMs = 1000;
constexpr int kSlowStorageMs = 10'000;

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const auto& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

// --- in the new process. slurmstepd has several threads, so from fork to exec only system calls are made and no memory
// is taken: everything was laid out before.

void close_from(unsigned first) {
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, first, ~0U, 0U) == 0) return;
#endif
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t last = limit.rlim_cur < 65536 ? limit.rlim_cur : 65536;
  for (rlim_t fd = first; fd < last; ++fd) ::close(static_cast<int>(fd));
}

[[noreturn]] void give_up(const char* what) {
  const char* reason = ::strerrordesc_np(errno);
  const std::array<const char*, 3> texts{what, ": ", reason ? reason : "unknown error"};
  for (const char* text : texts)
    if (::send(kEndFd, text, std::strlen(text), MSG_NOSIGNAL) < 0) break;
  ::_exit(1);
}

void begin_afresh() {
  ::setsid();
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// What slurmstepd's descriptor limits, files and immunity against the out-of-memory killer are is none of the
// sampler's.
[[noreturn]] void become_sampler(const SamplerStart& start, const std::vector<std::vector<char*>>& argvs,
                                 char* const* environment, int end_fd, int ready_fd) {
  // By way of high numbers: either may have the number that the other one shall get.
  const int end_copy = ::fcntl(end_fd, F_DUPFD, 10), ready_copy = ::fcntl(ready_fd, F_DUPFD, 10);
  ::dup2(end_copy, kEndFd);
  ::dup2(ready_copy, kReadyFd);
  close_from(kReadyFd + 1);
  if (::setresgid(start.gid, start.gid, start.gid) != 0 || ::setresuid(start.uid, start.uid, start.uid) != 0)
    give_up("cannot become the user");
  const int immunity = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (immunity >= 0) {
    (void)!::write(immunity, "0", 1);
    ::close(immunity);
  }
  for (const auto& folder : start.folders)
    if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) give_up(folder.c_str());
  std::size_t free = 0;
  while (free + 1 < start.runs.size() && ::access(start.runs[free].manifest.c_str(), F_OK) == 0) ++free;
  const SamplerRun& run = start.runs[free];
  if (!run.link.empty()) (void)!::symlink(run.link_target.c_str(), run.link.c_str());
  const int null = ::open("/dev/null", O_RDWR);
  const int log = ::open(run.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  ::dup2(null, 0);
  ::dup2(log >= 0 ? log : null, 1);
  ::dup2(log >= 0 ? log : null, 2);
  close_from(kReadyFd + 1);
  ::execve(argvs[free][0], argvs[free].data(), environment);
  give_up(argvs[free][0]);
}

}  // namespace

namespace {

// Both ends of a channel, closed with it unless taken.
struct Ends {
  std::array<int, 2> fds{-1, -1};
  Ends() = default;
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  ~Ends() {
    for (const int fd : fds)
      if (fd >= 0) ::close(fd);
  }
  int take(std::size_t which) { return std::exchange(fds[which], -1); }
  void close(std::size_t which) { ::close(take(which)); }
};

}  // namespace

bool Sampler::start(const SamplerStart& start) {
  Ends end, ready, told;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end.fds.data()) != 0 ||
      ::pipe2(ready.fds.data(), O_CLOEXEC) != 0 || ::pipe2(told.fds.data(), O_CLOEXEC) != 0)
    return false;
  auto runs = start.runs;
  std::vector<std::vector<char*>> argvs;
  for (auto& run : runs) {
    run.argv.insert(run.argv.end(), {"--until-fd", std::to_string(kEndFd), "--ready-fd", std::to_string(kReadyFd)});
    argvs.push_back(pointers(run.argv));
  }
  const auto environment = pointers(start.environment);
  const pid_t between = ::fork();
  if (between == 0) {
    begin_afresh();
    const pid_t sampler = ::fork();
    if (sampler == 0) become_sampler(start, argvs, environment.data(), end.fds[1], ready.fds[1]);
    (void)!::write(told.fds[1], &sampler, sizeof sampler);
    ::_exit(0);
  }
  for (auto* channel : {&end, &ready, &told}) channel->close(1);
  const bool known = between > 0 && ::read(told.fds[0], &pid_, sizeof pid_) == sizeof pid_ && pid_ > 0;
  if (between > 0)
    while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
    }
  if (!known) return false;
  fd_ = end.take(0);
  ready_fd_ = ready.take(0);
  return true;
}

std::string Sampler::wait_until_ready() {
  std::string line;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (ready_fd_ >= 0 && line.find('\n') == std::string::npos) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd wait{ready_fd_, POLLIN, 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) <= 0) break;
    std::array<char, 4096> text{};
    const auto n = ::read(ready_fd_, text.data(), text.size());
    if (n <= 0) break;
    line.append(text.data(), static_cast<std::size_t>(n));
  }
  if (ready_fd_ >= 0) ::close(std::exchange(ready_fd_, -1));
  const auto end = line.find('\n');
  return end == std::string::npos ? std::string() : line.substr(0, end);
}

void Sampler::tell(const std::string& line) {
  if (fd_ >= 0 && !asked_) (void)!::send(fd_, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Sampler::ask_to_end() {
  if (fd_ < 0 || asked_) return;
  early_ = ends_within(0);
  asked_ = true;
  ::shutdown(fd_, SHUT_WR);
}

// What the sampler says first within that time. "alive" is apps/cli/step.cpp's; anything else is why it could not start.
Sampler::Heard Sampler::listen(int wait_ms) {
  std::array<char, 512> text{};
  for (;;) {
    pollfd wait{fd_, POLLIN, 0};
    if (::poll(&wait, 1, wait_ms) <= 0) return Heard::nothing;
    const auto n = ::recv(fd_, text.data(), text.size(), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return Heard::its_end;
    if (n <= 0) continue;
    const std::string_view heard(text.data(), static_cast<std::size_t>(n));
    if (heard.starts_with("alive")) return Heard::it_is_alive;
    if (said_.size() < 1024) said_ += heard;
  }
}

bool Sampler::ends_within(int wait_ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    const auto heard = listen(left > 0 ? static_cast<int>(left) : 0);
    if (heard == Heard::its_end) return true;
    if (heard == Heard::nothing) return false;
  }
}

std::string Sampler::finish() {
  if (fd_ < 0) return {};
  std::string trouble;
  ask_to_end();
  if (early_) {
    trouble = "the sampler ended before the step";
  } else {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kSlowStorageMs);
    Heard heard = listen(kPatienceMs);
    while (heard == Heard::it_is_alive && std::chrono::steady_clock::now() < until) heard = listen(kPatienceMs);
    if (heard != Heard::its_end) {
      trouble = heard == Heard::it_is_alive ? "the sampler was still writing (is its storage slow?) and was stopped"
                                            : "the sampler did not end and was stopped";
      // Its process id is only used while our pair says that it is alive.
      ::kill(pid_, SIGTERM);
      if (!ends_within(kPatienceMs)) ::kill(pid_, SIGKILL);
    }
  }
  if (!said_.empty()) trouble = "the sampler could not start: " + said_;
  ::close(fd_);
  fd_ = -1;
  return trouble;
}

}  // namespace ergometer::spank
