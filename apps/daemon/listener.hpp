// Listener: the socket that clients connect to, from systemd or of our own, and the lock that keeps a second daemon of
// the node away. Used by main.
#pragma once

#include <filesystem>

#include "base/environment.hpp"
#include "base/result.hpp"

namespace ergometer::daemon {

class Listener {
 public:
  // Takes the lock beside `socket`, then the socket that systemd passed (LISTEN_PID, LISTEN_FDS), else makes one at
  // `socket` that every user may connect to: who may read is decided by the credentials. Errors: exists (another daemon
  // runs), permission_denied and io of lock or socket, invalid_argument (what was passed is no listening Unix socket).
  [[nodiscard]] static Result<Listener> open(const std::filesystem::path& socket, const Environment& environment);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  // Removes a socket of our own.
  ~Listener();
  [[nodiscard]] int fd() const { return fd_; }

 private:
  Listener() = default;
  int lock_ = -1, fd_ = -1;
  std::filesystem::path own_;
};

}  // namespace ergometer::daemon
