#include "device/control_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {
namespace fs = std::filesystem;

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return file_name_of(name.data());
}

struct Holder {
  pid_t pid = 0;
  std::string name;
};

// "PID NAME", at most one line.
Holder holder_of(int fd) {
  std::array<char, 512> text{};
  const ssize_t n = ::pread(fd, text.data(), text.size() - 1, 0);
  const std::string_view line = trim(std::string_view(text.data(), n > 0 ? static_cast<std::size_t>(n) : 0));
  const auto blank = line.find(' ');
  const auto pid = parse_int(line.substr(0, blank));
  if (!pid || blank == std::string_view::npos) return {};
  Holder holder{static_cast<pid_t>(*pid), std::string(trim(line.substr(blank)))};
  for (auto& c : holder.name)
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  return holder;
}

bool is_dead(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

// Any user may have made it; the first who does lets all others use it. No link is followed.
int open_lock(const fs::path& file) {
  int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) {
    fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd >= 0) ::fchmod(fd, 0666);
    if (fd < 0 && errno == EEXIST) fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  }
  return fd;
}

bool can_use(const fs::path& journal) {
  std::error_code ec;
  fs::create_directories(journal.parent_path(), ec);
  return !ec && ::access(journal.parent_path().c_str(), W_OK) == 0;
}

}  // namespace

ControlPlaces control_places(const HostRoot& root, const Environment& environment) {
  ControlPlaces places;
  places.system_journal = root.path("/run/ergometer/control.journal");
  places.lock = root.path("/run/lock/ergometer-control.lock");
  fs::path state = value_of(environment, "XDG_STATE_HOME");
  const auto home = value_of(environment, "HOME");
  if (state.empty() && !home.empty()) state = fs::path(home) / ".local/state";
  // Homes are shared between nodes, settings are not.
  if (!state.empty()) places.user_journal = state / "ergometer" / fmt::format("control-{}.journal", host_name());
  return places;
}

Result<fs::path> writable_journal(const ControlPlaces& places) {
  if (can_use(places.system_journal)) return places.system_journal;
  if (!places.user_journal.empty() && can_use(places.user_journal)) return places.user_journal;
  return fail(ErrorCode::permission_denied,
              fmt::format("no place for the journal of what is changed: neither {} nor {} can be written",
                          places.system_journal.parent_path().string(),
                          places.user_journal.empty() ? "$XDG_STATE_HOME" : places.user_journal.parent_path().string()),
              "name a folder of this node in XDG_STATE_HOME");
}

std::optional<fs::path> existing_journal(const ControlPlaces& places) {
  for (const auto* journal : {&places.system_journal, &places.user_journal}) {
    struct stat st {};
    if (!journal->empty() && ::stat(journal->c_str(), &st) == 0) return *journal;
  }
  return std::nullopt;
}

Result<ControlLock> ControlLock::take(const fs::path& file, const std::string& holder, int patience_ms) {
  std::error_code ec;
  fs::create_directories(file.parent_path(), ec);
  const int fd = open_lock(file);
  if (fd < 0) return tl::unexpected(errno_error("open the lock", file, errno));
  ControlLock lock(fd);
  constexpr int kStep = 20;
  for (int waited = 0; ::flock(fd, LOCK_EX | LOCK_NB) != 0; waited += kStep) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return tl::unexpected(errno_error("lock", file, errno));
    const auto other = holder_of(fd);
    if ((other.pid == 0 || is_dead(other.pid)) && waited < patience_ms) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kStep));
      continue;
    }
    return fail(ErrorCode::exists,
                other.pid > 0 ? fmt::format("this node's devices are controlled by PID {} ({})", other.pid, other.name)
                              : "this node's devices are controlled by another program",
                "wait until it has ended: only one program at a time may change limits and clocks");
  }
  lock.name_holder(holder);
  return lock;
}

bool ControlLock::is_held(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool held = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return held;
}

ControlLock::ControlLock(ControlLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

ControlLock& ControlLock::operator=(ControlLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

ControlLock::~ControlLock() {
  if (fd_ >= 0) ::close(fd_);
}

void ControlLock::name_holder(const std::string& holder) const {
  const auto line = fmt::format("{} {}\n", ::getpid(), holder);
  // Only for people: the lock itself does not depend on it.
  if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, line.data(), line.size(), 0) < 0) return;
}

}  // namespace ergometer
