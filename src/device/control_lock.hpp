// Where controls keep their journal, and the one lock a node that says who is changing them. Used by ControlGuard, its
// guardian, and the command line.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/environment.hpp"
#include "base/file.hpp"

namespace ergometer {

struct ControlPlaces {
  std::filesystem::path system_journal;  // /run/ergometer/control.journal: root's, gone after a restart
  // $XDG_STATE_HOME or ~/.local/state, ergometer/control-HOST.journal: for users who may set something; "" without a
  // home
  std::filesystem::path user_journal;
  std::filesystem::path lock;  // one for all users of the node
};

// Cheap: looks at nothing but the environment and the host's name.
[[nodiscard]] ControlPlaces control_places(const HostRoot& root, const Environment& environment);

// The place where this process can write, its folder made. Errors: permission_denied or io.
[[nodiscard]] Result<std::filesystem::path> writable_journal(const ControlPlaces& places);
// The journal that is there, if any: one stat() a place.
[[nodiscard]] std::optional<std::filesystem::path> existing_journal(const ControlPlaces& places);

// The right to change controls of this node, as a lock on an open file: it lives until every process that shares the
// descriptor has closed it, a guardian included.
class ControlLock {
 public:
  // Waits up to `patience` while the holder named in the file is dead (its guardian is at work) or none is named yet. Errors: exists,
  // naming the holder and its pid; permission_denied.
  [[nodiscard]] static Result<ControlLock> take(const std::filesystem::path& file, const std::string& holder,
                                                int patience_ms = 10000);
  // Whether somebody holds it now.
  [[nodiscard]] static bool is_held(const std::filesystem::path& file);
  // Takes over a descriptor that another process locked.
  explicit ControlLock(int fd) : fd_(fd) {}
  ControlLock(ControlLock&& other) noexcept;
  ControlLock& operator=(ControlLock&& other) noexcept;
  ~ControlLock();
  [[nodiscard]] int fd() const { return fd_; }
  // Writes who holds it now: this process, as `holder`.
  void name_holder(const std::string& holder) const;

 private:
  int fd_ = -1;
};

}  // namespace ergometer
