// ProcessRoots: further processes below which everything belongs to the measured tree: those of the other ranks on this
// node, which come and go while the first one measures. Used by the tree sensor and ProcessView; filled by the
// session's owner.
#pragma once

#include <map>
#include <mutex>
#include <optional>

namespace ergometer {

// All members may be called from any thread.
class ProcessRoots {
 public:
  struct Root {
    bool ended = false;
    std::optional<double> cpu_s;  // what its processes had used when it ended, as it told itself
  };

  void add(int pid) {
    const std::lock_guard lock(mutex_);
    roots_.try_emplace(pid);
  }
  void end(int pid, std::optional<double> cpu_s) {
    const std::lock_guard lock(mutex_);
    roots_[pid] = {true, cpu_s};
  }
  [[nodiscard]] std::map<int, Root> all() const {
    const std::lock_guard lock(mutex_);
    return roots_;
  }
  [[nodiscard]] bool contains(int pid) const {
    const std::lock_guard lock(mutex_);
    return roots_.contains(pid);
  }

 private:
  mutable std::mutex mutex_;
  std::map<int, Root> roots_;
};

}  // namespace ergometer
