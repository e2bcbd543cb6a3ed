// A connection to ergometerd: connects, reads the greeting, asks and waits for the answer, all within a time limit. Used
// by this backend's discovery and by each of its sensors, which have a connection each.
#pragma once

#include <filesystem>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace ergometer::remote {

class Link {
 public:
  // Errors: not_found (no socket), unavailable (nobody listens, or all places are taken), permission_denied,
  // unsupported (another version, or a daemon whose clock is not ours), timeout. Each hint names the remedy.
  [[nodiscard]] static Result<Link> open(const std::filesystem::path& socket, Clock& clock, Nanos patience);
  Link(Link&& other) noexcept;
  Link& operator=(Link&& other) noexcept;
  ~Link();

  // The next line after sending this one, without its end. After an Error (timeout, lost, corrupt) the link is of no
  // further use.
  [[nodiscard]] Result<std::string> ask(const std::string& line, Nanos patience);

 private:
  explicit Link(int fd) : fd_(fd) {}
  [[nodiscard]] Result<void> send(std::string_view bytes, std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] Result<std::string> receive(std::chrono::steady_clock::time_point deadline);

  int fd_ = -1;
};

}  // namespace ergometer::remote
