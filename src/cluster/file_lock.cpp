#include "cluster/file_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "base/file.hpp"

namespace ergometer {
namespace {

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

Result<FileLock> FileLock::open(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return tl::unexpected(errno_error("open", file, errno));
  return FileLock(fd);
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
FileLock::~FileLock() {
  if (fd_ < 0) return;
  release();
  ::close(fd_);
}

bool FileLock::try_take() const {
  auto lock = whole_file(F_WRLCK);
  return ::fcntl(fd_, F_OFD_SETLK, &lock) == 0;
}

bool FileLock::take_within(Nanos patience) const {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!try_take()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void FileLock::release() const {
  auto lock = whole_file(F_UNLCK);
  ::fcntl(fd_, F_OFD_SETLK, &lock);
}

bool FileLock::is_taken() const {
  auto lock = whole_file(F_WRLCK);
  return ::fcntl(fd_, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace ergometer
