// The opened driver library and its GPUs, shared by all sensors of the node. Guards every use: a GPU that fails is
// found again by its UUID, and when all have failed the library is started anew, at a slow rate. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "device/nvml/nvml_api.hpp"

namespace ergometer::nvml {

// One physical GPU. The atomics are shared by its sensors' threads.
struct Gpu {
  int index = 0;
  std::string uuid;
  std::atomic<Device> handle{nullptr};
  std::atomic<bool> failing{false};
};

class Driver {
 public:
  // Loads and initialises. May block as long as the driver does.
  static Result<std::shared_ptr<Driver>> open(const Host& host, const std::string& path);
  // Closes the library, unless something failed: closing a sick driver may hang.
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // The right to call the library for one GPU, for the time of one read.
  struct Access {
    std::shared_lock<std::shared_mutex> lock;
    const Api* api = nullptr;
    Device device = nullptr;
    unsigned generation = 0;  // changes when the library was started anew: older samples and handles are void
  };
  // Never waits for another GPU's call. Errors: lost (the GPU or the driver is away), unavailable (a restart is
  // under way).
  [[nodiscard]] Result<Access> access(Gpu& gpu);
  // Call after a read, with the access given back: whether the GPU answered.
  void report(Gpu& gpu, bool answered) { gpu.failing = !answered; }

  // GPUs that have sensors; only they count for "all have failed". Before the first read.
  void watch(std::shared_ptr<Gpu> gpu) { watched_.push_back(std::move(gpu)); }

  // For discovery, before there are sensors.
  [[nodiscard]] const Api& api() const { return api_; }
  [[nodiscard]] Clock& clock() const { return *clock_; }
  // Whether what was made in this life of the library can still be given back to it.
  [[nodiscard]] bool is_running(unsigned generation) {
    const std::shared_lock lock(mutex_, std::try_to_lock);
    return lock && running_ && generation == generation_;
  }
  // Handle of a device by UUID where it has one, else by index.
  [[nodiscard]] Return resolve(const Gpu& gpu, Device& device) const;

 private:
  Driver(Api api, std::shared_ptr<Clock> clock) : api_(std::move(api)), clock_(std::move(clock)) {}
  void restart_if_all_failed();
  [[nodiscard]] bool all_failed() const;

  Api api_;
  std::shared_ptr<Clock> clock_;
  std::vector<std::shared_ptr<Gpu>> watched_;
  std::shared_mutex mutex_;  // shared: calls; exclusive: restart. Nobody ever waits for it.
  bool running_ = false;     // guarded by mutex_
  std::atomic<unsigned> generation_{0};
  std::atomic<std::int64_t> next_restart_ns_{0};  // 0: no failure seen yet
};

// Reason and remedy of a failed nvmlInit.
[[nodiscard]] Error init_error(Return code);

}  // namespace ergometer::nvml
