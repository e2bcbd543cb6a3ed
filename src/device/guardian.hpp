// The guardian: a small process of its own session that restores controls when the process that set them dies of
// anything, SIGKILL included. Started by ControlGuard before the first write; its body is run by
// `ergometer control guard`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "device/control_restore.hpp"

namespace ergometer {

// The owner's side.
class Guardian {
 public:
  // Runs `command` (a program and its first arguments) with what guardian_body needs behind it: descriptors of the
  // lock and of the pipe whose closing tells it that the owner has died, and the journal's path. It is nobody's child:
  // neither the process group nor the tree of the caller reaches it. Returns when it is ready. A fresh program and no
  // plain fork, since the state of a driver's library must not be shared with a child. Errors: unavailable, io.
  [[nodiscard]] static Result<Guardian> start(const std::vector<std::string>& command, int lock_fd,
                                              const std::filesystem::path& journal);
  Guardian(Guardian&& other) noexcept;
  Guardian& operator=(Guardian&& other) noexcept;
  ~Guardian() { release(); }
  [[nodiscard]] bool alive() const;
  // Whoever holds a copy of this counts as the owner.
  [[nodiscard]] int life_fd() const { return life_fd_; }
  // Lets it go and waits until it has ended, some seconds at most.
  void release();

 private:
  Guardian(int life_fd, int ready_fd) : life_fd_(life_fd), ready_fd_(ready_fd) {}
  int life_fd_ = -1;   // closing it, or dying, tells the guardian
  int ready_fd_ = -1;  // end of file: the guardian is gone
};

struct GuardianTask {
  int life_fd = -1, ready_fd = -1, lock_fd = -1;
  std::filesystem::path journal;
};

// The guardian's side: blocks every signal, says that it is ready, waits for the owner's end. If the journal then says
// that something is left to restore, does it with `restore` and closes the journal if nothing failed. Returns what was
// restored.
[[nodiscard]] std::vector<Restored> guardian_body(const GuardianTask& task,
                                                  const std::function<std::vector<Restored>(JournalWriter&)>& restore);

}  // namespace ergometer
