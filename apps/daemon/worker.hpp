// Worker: does tasks one after another on a thread of its own, for what may wait for a device or a disk. Used by
// ControlDesk and JobKeeper, so that the server's thread waits for nothing.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/units.hpp"

namespace ergometer::daemon {

class Worker {
 public:
  // `idle` (may be empty) is called whenever no task waits; it returns when it wants to be called again, unset: not
  // before the next task.
  explicit Worker(std::function<std::optional<Nanos>()> idle = {})
      : idle_(std::move(idle)), thread_([this] { run(); }) {}
  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // From any thread; after stop() nothing is done any more.
  void add(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
    changed_.notify_one();
  }

  // Waits for the task that is being done; those behind it are not done.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (!tasks_.empty()) {
        auto task = std::move(tasks_.front());
        tasks_.pop_front();
        lock.unlock();
        task();
        lock.lock();
        continue;
      }
      lock.unlock();
      const auto pause = idle_ ? idle_() : std::nullopt;
      lock.lock();
      const auto wanted = [this] { return stopping_ || !tasks_.empty(); };
      if (pause)
        changed_.wait_for(lock, *pause, wanted);
      else
        changed_.wait(lock, wanted);
    }
  }

  std::function<std::optional<Nanos>()> idle_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ergometer::daemon
