// FileLock: an exclusive lock on a file of this machine, held by an open file description, so that it ends with the
// process whatever ends it, and can be asked about without being taken. Used by the election.
#pragma once

#include <filesystem>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace ergometer {

class FileLock {
 public:
  // Opens or makes the file (mode 0600; no link is followed), without the lock. Errors name the path.
  [[nodiscard]] static Result<FileLock> open(const std::filesystem::path& file);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  // Gives the lock back, also where a forked process still shares the descriptor.
  ~FileLock();

  [[nodiscard]] bool try_take() const;
  // Tries again for so long.
  [[nodiscard]] bool take_within(Nanos patience) const;
  void release() const;
  // Whether another open file description holds it now.
  [[nodiscard]] bool is_taken() const;

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace ergometer
