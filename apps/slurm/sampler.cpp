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
#include <csignal>
#include <cstring>

namespace ergometer::spank {
namespace {

constexpr int kEndFd = 3;  // of the sampler
constexpr int kPatienceMs = 1000;

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

// What slurmstepd's descriptor limits, files and immunity against the out-of-memory killer are is none of the sampler's.
[[noreturn]] void become_sampler(const SamplerStart& start, char* const* argv, char* const* environment, int end_fd) {
  if (end_fd != kEndFd)
    ::dup2(end_fd, kEndFd);
  else
    ::fcntl(kEndFd, F_SETFD, 0);  // it has to survive the exec
  close_from(kEndFd + 1);
  if (::setresgid(start.gid, start.gid, start.gid) != 0 || ::setresuid(start.uid, start.uid, start.uid) != 0)
    give_up("cannot become the user");
  const int immunity = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (immunity >= 0) {
    (void)!::write(immunity, "0", 1);
    ::close(immunity);
  }
  for (const auto& folder : start.folders)
    if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) give_up(folder.c_str());
  if (!start.link.empty()) (void)!::symlink(start.link_target.c_str(), start.link.c_str());
  const int null = ::open("/dev/null", O_RDWR);
  const int log = ::open(start.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  ::dup2(null, 0);
  ::dup2(log >= 0 ? log : null, 1);
  ::dup2(log >= 0 ? log : null, 2);
  close_from(kEndFd + 1);
  ::execve(argv[0], argv, environment);
  give_up(argv[0]);
}

}  // namespace

bool Sampler::start(const SamplerStart& start) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return false;
  std::vector<std::string> words = start.argv;
  words.insert(words.end(), {"--until-fd", std::to_string(kEndFd)});
  const auto argv = pointers(words);
  const auto environment = pointers(start.environment);
  std::array<int, 2> told{};
  if (::pipe2(told.data(), O_CLOEXEC) != 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return false;
  }
  const pid_t between = ::fork();
  if (between == 0) {
    begin_afresh();
    const pid_t sampler = ::fork();
    if (sampler == 0) become_sampler(start, argv.data(), environment.data(), ends[1]);
    (void)!::write(told[1], &sampler, sizeof sampler);
    ::_exit(0);
  }
  ::close(ends[1]);
  ::close(told[1]);
  const bool known = between > 0 && ::read(told[0], &pid_, sizeof pid_) == sizeof pid_ && pid_ > 0;
  ::close(told[0]);
  if (between > 0)
    while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
    }
  if (!known) {
    ::close(ends[0]);
    return false;
  }
  fd_ = ends[0];
  return true;
}

void Sampler::ask_to_end() {
  if (fd_ < 0 || asked_) return;
  early_ = has_ended(0);
  asked_ = true;
  ::shutdown(fd_, SHUT_WR);
}

bool Sampler::has_ended(int wait_ms) {
  std::array<char, 512> text{};
  for (;;) {
    pollfd wait{fd_, POLLIN, 0};
    if (::poll(&wait, 1, wait_ms) <= 0) return false;
    const auto n = ::recv(fd_, text.data(), text.size(), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return true;
    if (n > 0 && said_.size() < 1024) said_.append(text.data(), static_cast<std::size_t>(n));
  }
}

std::string Sampler::finish() {
  if (fd_ < 0) return {};
  std::string trouble;
  ask_to_end();
  // Its process id is only used while our pair says that it is alive.
  if (!early_ && !has_ended(kPatienceMs)) {
    trouble = "the sampler did not end and was stopped";
    ::kill(pid_, SIGTERM);
    if (!has_ended(kPatienceMs)) ::kill(pid_, SIGKILL);
  } else if (early_) {
    trouble = "the sampler ended before the step";
  }
  if (!said_.empty()) trouble = "the sampler could not start: " + said_;
  ::close(fd_);
  fd_ = -1;
  return trouble;
}

}  // namespace ergometer::spank
