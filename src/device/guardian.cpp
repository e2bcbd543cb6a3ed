#include "device/guardian.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/file.hpp"
#include "device/control_lock.hpp"

namespace ergometer {
namespace {

constexpr int kLife = 3, kReady = 4, kLock = 5;  // descriptors in the guardian
constexpr int kStartMs = 10000;                  // a machine under full load is slow to start a program
constexpr int kEndMs = 10000;

// Whether there is something to read, or the other end is gone.
bool wait_readable(int fd, int ms) {
  pollfd waiting{fd, POLLIN, 0};
  int n;
  do n = ::poll(&waiting, 1, ms);
  while (n < 0 && errno == EINTR);
  return n > 0;
}

// Between fork and exec: only what is safe in a child of many threads.
struct Child {
  std::vector<char*> argv;
  int life, ready, lock, nothing;

  [[noreturn]] void become() const {
    ::setsid();
    // Its parent ends at once, so it belongs to nobody's tree and leads no session of a terminal.
    if (::fork() != 0) ::_exit(0);
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);  // kept over exec
    // Standard streams first: the null device may itself be one of the numbers below.
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDOUT_FILENO);
    const std::array from{life, ready, lock};
    std::array<int, 3> aside{};
    for (std::size_t i = 0; i < from.size(); ++i) aside[i] = ::fcntl(from[i], F_DUPFD, 10);
    for (std::size_t i = 0; i < aside.size(); ++i) ::dup2(aside[i], kLife + static_cast<int>(i));
    ::close_range(kLock + 1, ~0U, 0);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
};

struct Pipe {
  int read = -1, write = -1;
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_fd(read);
    close_fd(write);
  }
  [[nodiscard]] bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
};

// Forks twice, so that the guardian is adopted by the first process of the system and never by us.
int fork_away(const Child& child) {
  int reaper = 0;
  ::prctl(PR_GET_CHILD_SUBREAPER, &reaper);
  if (reaper) ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  const pid_t pid = ::fork();
  if (pid == 0) child.become();
  const int error = pid < 0 ? errno : 0;
  if (pid > 0)
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  if (reaper) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  return error;
}

}  // namespace

Result<Guardian> Guardian::start(const std::vector<std::string>& command, int lock_fd,
                                 const std::filesystem::path& journal) {
  Pipe life, ready;
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (!life.open() || !ready.open() || nothing < 0) {
    const int error = errno;
    if (nothing >= 0) ::close(nothing);
    return tl::unexpected(errno_error("start the guardian of", journal, error));
  }
  auto words = command;
  for (const auto& word :
       {std::string("--life-fd"), fmt::to_string(kLife), std::string("--ready-fd"), fmt::to_string(kReady),
        std::string("--lock-fd"), fmt::to_string(kLock), std::string("--journal"), journal.string()})
    words.push_back(word);
  Child child{{}, life.read, ready.write, lock_fd, nothing};
  for (auto& word : words) child.argv.push_back(word.data());
  child.argv.push_back(nullptr);
  const int error = fork_away(child);
  ::close(nothing);
  if (error != 0) return tl::unexpected(errno_error("start the guardian of", journal, error));
  close_fd(life.read);
  close_fd(ready.write);
  char byte = 0;
  if (!wait_readable(ready.read, kStartMs) || ::read(ready.read, &byte, 1) != 1)
    return fail(
        ErrorCode::unavailable,
        fmt::format("the guardian, which restores settings if this program dies, did not start ({})", command.front()),
        "nothing was changed");
  return Guardian(std::exchange(life.write, -1), std::exchange(ready.read, -1));
}

Guardian::Guardian(Guardian&& other) noexcept
    : life_fd_(std::exchange(other.life_fd_, -1)), ready_fd_(std::exchange(other.ready_fd_, -1)) {}

Guardian& Guardian::operator=(Guardian&& other) noexcept {
  std::swap(life_fd_, other.life_fd_);
  std::swap(ready_fd_, other.ready_fd_);
  return *this;
}

bool Guardian::alive() const { return ready_fd_ >= 0 && !wait_readable(ready_fd_, 0); }

void Guardian::release() {
  close_fd(life_fd_);
  if (ready_fd_ >= 0) wait_readable(ready_fd_, kEndMs);
  close_fd(ready_fd_);
}

std::vector<Restored> guardian_body(const GuardianTask& task,
                                    const std::function<std::vector<Restored>(JournalWriter&)>& restore) {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::signal(SIGPIPE, SIG_IGN);  // the owner's terminal may be gone when there is something to say
  for (const int fd : {task.life_fd, task.ready_fd, task.lock_fd}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  const ControlLock lock(task.lock_fd);
  if (::write(task.ready_fd, "r", 1) != 1) return {};
  char byte = 0;
  ssize_t n;
  do n = ::read(task.life_fd, &byte, 1);
  while (n > 0 || (n < 0 && errno == EINTR));
  auto journal = JournalWriter::open(task.journal);
  if (!journal || journal->journal().kept) return {};
  lock.name_holder(fmt::format("the guardian of PID {}, {}", journal->journal().owner_pid, journal->journal().owner));
  auto restored = restore(*journal);
  if (!any_failed(restored) && !journal->remove())
    restored.push_back({"journal", RestoreOutcome::failed, "the journal could not be removed", {}});
  return restored;
}

}  // namespace ergometer
