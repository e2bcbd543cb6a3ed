// The fake driver's settings: power limit, locked clocks, persistence mode. With `state` in the scenario they live in a
// file that all processes share and that survives any of them; with `log` every write is a line there. Part of the fake
// NVML.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <thread>

#include "fakes/nvml/fake_driver.hpp"

namespace fake_nvml {
namespace {

std::size_t index_of(const GpuScript& gpu) { return static_cast<std::size_t>(&gpu - state().scenario->gpus.data()); }

GpuSettings initial(const GpuScript& gpu) {
  GpuSettings s;
  s.limit_mw = static_cast<int>(std::lround((gpu.requested_w < 0 ? gpu.limit_w : gpu.requested_w) * 1000));
  s.persistence = gpu.persistence ? 1 : 0;
  return s;
}

// One line a GPU: "gpu0 limit_mw 250000 clock 0 0 memory 0 0 persistence 0 writes 3 set 1".
std::vector<GpuSettings> read_state(const std::string& path) {
  std::vector<GpuSettings> all;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    GpuSettings s;
    int gpu = 0, was_set = 0;
    if (std::sscanf(line.c_str(), "gpu%d limit_mw %d clock %d %d memory %d %d persistence %d writes %d set %d", &gpu,
                    &s.limit_mw, &s.clock_low, &s.clock_high, &s.memory_low, &s.memory_high, &s.persistence, &s.writes,
                    &was_set) == 9) {
      s.limit_was_set = was_set != 0;
      all.push_back(s);
    }
  }
  return all;
}

// Written aside and renamed, so that a kill leaves the old or the new.
void write_state(const std::string& path, const std::vector<GpuSettings>& all) {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& s = all[i];
    text += fmt::format("gpu{} limit_mw {} clock {} {} memory {} {} persistence {} writes {} set {}\n", i, s.limit_mw,
                        s.clock_low, s.clock_high, s.memory_low, s.memory_high, s.persistence, s.writes,
                        s.limit_was_set ? 1 : 0);
  }
  const auto aside = fmt::format("{}.{}", path, ::getpid());
  std::ofstream(aside) << text;
  std::rename(aside.c_str(), path.c_str());
}

std::vector<GpuSettings>& settings() {
  State& s = state();
  auto& all = s.settings;
  const auto& path = s.scenario->state_path;
  if (!path.empty())
    if (auto shared = read_state(path); shared.size() == s.scenario->gpus.size()) return all = std::move(shared);
  if (all.size() != s.scenario->gpus.size()) {
    all.clear();
    for (const auto& gpu : s.scenario->gpus) all.push_back(initial(gpu));
    if (!path.empty()) write_state(path, all);
  }
  return all;
}

// One writer at a time among all processes; the kernel unlocks for the dead.
class StateLock {
 public:
  StateLock() {
    const auto& path = state().scenario->state_path;
    if (path.empty()) return;
    fd_ = ::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0) continue;
  }
  ~StateLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

 private:
  int fd_ = -1;
};

void log_write(const char* function, std::size_t gpu, const std::string& what, Return code) {
  const auto& path = state().scenario->log_path;
  if (path.empty()) return;
  const auto line = fmt::format("{} gpu{} {} {} -> {}\n", ::getpid(), gpu, function, what, static_cast<int>(code));
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return;
  if (::write(fd, line.data(), line.size()) < 0) std::perror("fake NVML: log");
  ::close(fd);
}

void pause_ms(double ms) {
  if (ms > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

// One write: waits, fails as the scenario says, changes the settings, lets others act, waits again.
template <class Change>
Return write(const Call& call, const char* function, const std::string& what, const Change& change) {
  if (call.failed()) {
    if (call.gpu) log_write(function, index_of(*call.gpu), what, call.code);
    return call.code;
  }
  const double ms = state().scenario->write_ms;
  pause_ms(ms);
  Return code = Return::success;
  {
    const StateLock lock;
    auto& all = settings();
    auto& own = all[index_of(*call.gpu)];
    for (const auto& fault : call.gpu->write_faults)
      if (fault.function == function && own.writes >= fault.after_writes &&
          own.writes < fault.after_writes + fault.times)
        code = static_cast<Return>(fault.code);
    ++own.writes;
    if (code == Return::success) code = change(own);
    for (const auto& other : call.gpu->others)
      if (own.writes == other.after_writes) {
        own.limit_mw = static_cast<int>(std::lround(other.watts * 1000));
        own.limit_was_set = true;
      }
    if (!state().scenario->state_path.empty()) write_state(state().scenario->state_path, all);
    log_write(function, index_of(*call.gpu), what, code);
  }
  pause_ms(ms);
  return code;
}

Return give_clocks(const std::vector<unsigned>& mhz, unsigned* count, unsigned* out) {
  const unsigned room = *count;
  *count = static_cast<unsigned>(mhz.size());
  if (room < mhz.size() || !out) return Return::insufficient_size;
  // Highest first, as the driver does.
  for (std::size_t i = 0; i < mhz.size(); ++i) out[i] = mhz[mhz.size() - 1 - i];
  return Return::success;
}

}  // namespace

GpuSettings settings_of(const GpuScript& gpu) {
  const StateLock lock;
  return settings()[index_of(gpu)];
}

double management_w(const GpuScript& gpu) { return settings_of(gpu).limit_mw / 1000.0; }

double enforced_w(const GpuScript& gpu) {
  const auto now = settings_of(gpu);
  return std::fmin(now.limit_was_set ? now.limit_mw / 1000.0 : gpu.limit_w, gpu.cap_w);
}

double running_clock(const GpuScript& gpu, ClockKind kind, double free) {
  const auto now = settings_of(gpu);
  const int low = kind == ClockKind::memory ? now.memory_low : now.clock_low;
  const int high = kind == ClockKind::memory ? now.memory_high : now.clock_high;
  return high == 0 || !gpu.clock_obeys ? free : std::fmax(low, std::fmin(high, free));
}

}  // namespace fake_nvml

using namespace fake_nvml;

NVML_CALL nvmlDeviceGetPowerManagementLimit(Device device, unsigned* out) {
  const Call call("nvmlDeviceGetPowerManagementLimit", device);
  if (!call.failed()) *out = static_cast<unsigned>(std::lround(management_w(*call.gpu) * 1000));
  return call.code;
}

NVML_CALL nvmlDeviceSetPowerManagementLimit(Device device, unsigned mw) {
  const Call call("nvmlDeviceSetPowerManagementLimit", device);
  return write(call, "nvmlDeviceSetPowerManagementLimit", fmt::to_string(mw), [&](GpuSettings& s) {
    if (mw < call.gpu->min_w * 1000 || mw > call.gpu->max_w * 1000) return Return::invalid_argument;
    s.limit_mw = static_cast<int>(mw);
    s.limit_was_set = true;
    return Return::success;
  });
}

NVML_CALL nvmlDeviceGetPersistenceMode(Device device, unsigned* out) {
  const Call call("nvmlDeviceGetPersistenceMode", device);
  if (!call.failed()) *out = static_cast<unsigned>(settings_of(*call.gpu).persistence);
  return call.code;
}

NVML_CALL nvmlDeviceSetPersistenceMode(Device device, unsigned on) {
  const Call call("nvmlDeviceSetPersistenceMode", device);
  return write(call, "nvmlDeviceSetPersistenceMode", fmt::to_string(on), [&](GpuSettings& s) {
    s.persistence = on ? 1 : 0;
    return Return::success;
  });
}

NVML_CALL nvmlDeviceGetSupportedMemoryClocks(Device device, unsigned* count, unsigned* out) {
  const Call call("nvmlDeviceGetSupportedMemoryClocks", device);
  return call.failed() ? call.code : give_clocks(call.gpu->memory_clocks, count, out);
}

NVML_CALL nvmlDeviceGetSupportedGraphicsClocks(Device device, unsigned memory_clock, unsigned* count, unsigned* out) {
  const Call call("nvmlDeviceGetSupportedGraphicsClocks", device);
  if (call.failed()) return call.code;
  const auto& known = call.gpu->memory_clocks;
  if (std::find(known.begin(), known.end(), memory_clock) == known.end()) return Return::not_found;
  return give_clocks(call.gpu->clocks, count, out);
}

#ifndef FAKE_NVML_OLD

NVML_CALL nvmlDeviceSetGpuLockedClocks(Device device, unsigned low, unsigned high) {
  const Call call("nvmlDeviceSetGpuLockedClocks", device);
  return write(call, "nvmlDeviceSetGpuLockedClocks", fmt::format("{} {}", low, high), [&](GpuSettings& s) {
    s.clock_low = static_cast<int>(low);
    s.clock_high = static_cast<int>(high);
    return low > high ? Return::invalid_argument : Return::success;
  });
}

NVML_CALL nvmlDeviceResetGpuLockedClocks(Device device) {
  const Call call("nvmlDeviceResetGpuLockedClocks", device);
  return write(call, "nvmlDeviceResetGpuLockedClocks", "-", [&](GpuSettings& s) {
    s.clock_low = s.clock_high = 0;
    return Return::success;
  });
}

NVML_CALL nvmlDeviceSetMemoryLockedClocks(Device device, unsigned low, unsigned high) {
  const Call call("nvmlDeviceSetMemoryLockedClocks", device);
  return write(call, "nvmlDeviceSetMemoryLockedClocks", fmt::format("{} {}", low, high), [&](GpuSettings& s) {
    s.memory_low = static_cast<int>(low);
    s.memory_high = static_cast<int>(high);
    return low > high ? Return::invalid_argument : Return::success;
  });
}

NVML_CALL nvmlDeviceResetMemoryLockedClocks(Device device) {
  const Call call("nvmlDeviceResetMemoryLockedClocks", device);
  return write(call, "nvmlDeviceResetMemoryLockedClocks", "-", [&](GpuSettings& s) {
    s.memory_low = s.memory_high = 0;
    return Return::success;
  });
}

#endif  // FAKE_NVML_OLD
