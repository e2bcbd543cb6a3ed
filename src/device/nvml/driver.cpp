#include "device/nvml/driver.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ergometer::nvml {
namespace {

constexpr std::int64_t kRestartEveryNs = 5'000'000'000;

}  // namespace

Error init_error(Return code) {
  const std::string reason = "NVML does not start: " + to_text(code);
  switch (code) {
    case Return::driver_not_loaded:
      return {ErrorCode::unavailable, reason, "load the kernel module (modprobe nvidia) and look at dmesg"};
    case Return::lib_rm_version_mismatch:
      return {ErrorCode::unavailable, reason, "the driver was updated while loaded: reload its modules or reboot"};
    case Return::no_permission:
    case Return::operating_system:
      return {ErrorCode::permission_denied, reason, "give this user access to /dev/nvidiactl and /dev/nvidia*"};
    default:
      return {ErrorCode::unavailable, reason,
              "check that nvidia-smi works here; a container needs access to the GPUs (--gpus all)"};
  }
}

Result<std::shared_ptr<Driver>> Driver::open(const Host& host, const std::string& path) {
  auto api = load_api(host, path);
  if (!api) return tl::unexpected(api.error());
  std::shared_ptr<Driver> driver(new Driver(std::move(*api), host.clock));
  const Return code = driver->api_.init();
  if (code != Return::success) return tl::unexpected(init_error(code));
  driver->running_ = true;
  return driver;
}

Driver::~Driver() {
  const bool sick = std::any_of(watched_.begin(), watched_.end(), [](const auto& gpu) { return gpu->failing.load(); });
  if (running_ && !sick) api_.shutdown();
}

Return Driver::resolve(const Gpu& gpu, Device& device) const {
  if (!gpu.uuid.empty() && api_.handle_by_uuid) return api_.handle_by_uuid(gpu.uuid.c_str(), &device);
  return api_.handle_by_index(static_cast<unsigned>(gpu.index), &device);
}

Result<Driver::Access> Driver::access(Gpu& gpu) {
  if (gpu.failing) restart_if_all_failed();
  Access access{std::shared_lock(mutex_, std::try_to_lock), &api_, nullptr, generation_};
  if (!access.lock) return fail(ErrorCode::unavailable, "the NVIDIA driver library is being started anew");
  if (!running_) return fail(ErrorCode::lost, "the NVIDIA driver does not answer");
  if (!gpu.failing) {
    access.device = gpu.handle;
    return access;
  }
  // The old handle may be void: the device can come back under another index.
  const Return code = resolve(gpu, access.device);
  if (code != Return::success)
    return fail(ErrorCode::lost, fmt::format("GPU {} ({}): {}", gpu.index, gpu.uuid, to_text(code)));
  gpu.handle = access.device;
  return access;
}

bool Driver::all_failed() const {
  return std::all_of(watched_.begin(), watched_.end(), [](const auto& gpu) { return gpu->failing.load(); });
}

void Driver::restart_if_all_failed() {
  if (!all_failed()) {
    next_restart_ns_ = 0;
    return;
  }
  const std::int64_t now = to_ns(clock_->now());
  std::int64_t due = next_restart_ns_;
  if (due == 0) {
    // A first failure may pass by itself: wait before the first restart, too.
    next_restart_ns_.compare_exchange_strong(due, now + kRestartEveryNs);
    return;
  }
  if (now < due || !next_restart_ns_.compare_exchange_strong(due, now + kRestartEveryNs)) return;
  // A call that hangs holds the lock; the library must not be closed under it.
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  if (running_) api_.shutdown();
  running_ = api_.init() == Return::success;
  ++generation_;
}

}  // namespace ergometer::nvml
