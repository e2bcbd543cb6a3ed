// Shared storage that is slow, for programs started with this library in LD_PRELOAD: each call that changes or opens
// something below $SLOW_FOLDER takes $SLOW_MS milliseconds, and as long as the file $SLOW_STALL exists none returns, as
// on a network file system whose server is away.
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void sleep_ms(long ms) {
  timespec left{ms / 1000, ms % 1000 * 1'000'000};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

void wait_for_storage() {
  const int before = errno;
  if (const char* ms = std::getenv("SLOW_MS")) sleep_ms(std::atol(ms));
  if (const char* stall = std::getenv("SLOW_STALL"))
    while (::access(stall, F_OK) == 0) sleep_ms(10);
  errno = before;
}

bool is_slow(const char* path) {
  const char* folder = std::getenv("SLOW_FOLDER");
  return folder && path && std::strncmp(path, folder, std::strlen(folder)) == 0;
}

void wait_for(const char* path) {
  if (is_slow(path)) wait_for_storage();
}

void wait_for(int fd) {
  char link[64], path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = ::readlink(link, path, sizeof path - 1);
  if (n < 0) return;
  path[n] = '\0';
  wait_for(path);
}

void wait_at(int folder, const char* path) {
  if (path && path[0] == '/') return wait_for(path);
  if (folder >= 0) wait_for(folder);
}

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  wait_for(path);
  return real<int (*)(const char*, int, mode_t)>("open")(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  wait_at(folder, path);
  return real<int (*)(int, const char*, int, mode_t)>("openat")(folder, path, flags, mode);
}

ssize_t write(int fd, const void* data, size_t size) {
  wait_for(fd);
  return real<ssize_t (*)(int, const void*, size_t)>("write")(fd, data, size);
}

ssize_t writev(int fd, const iovec* parts, int count) {
  wait_for(fd);
  return real<ssize_t (*)(int, const iovec*, int)>("writev")(fd, parts, count);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  wait_for(fd);
  return real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite")(fd, data, size, at);
}

int fsync(int fd) {
  wait_for(fd);
  return real<int (*)(int)>("fsync")(fd);
}

int mkdir(const char* path, mode_t mode) noexcept {
  wait_for(path);
  return real<int (*)(const char*, mode_t)>("mkdir")(path, mode);
}

int rename(const char* from, const char* to) noexcept {
  wait_for(to);
  return real<int (*)(const char*, const char*)>("rename")(from, to);
}

int unlink(const char* path) noexcept {
  wait_for(path);
  return real<int (*)(const char*)>("unlink")(path);
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  wait_at(folder, path);
  return real<int (*)(int, const char*, int)>("unlinkat")(folder, path, flags);
}
}
