// The state of the fake driver and the frame of each of its calls: counting, waiting, failing as the scenario says.
// Part of the fake NVML.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "device/nvml/nvml_abi.hpp"
#include "fakes/nvml/scenario.hpp"

#ifdef FAKE_NVML_OLD
#define VERSIONED(name, suffix) name
#else
#define VERSIONED(name, suffix) name##suffix
#endif
#define NVML_CALL extern "C" __attribute__((visibility("default"))) ergometer::nvml::Return

namespace fake_nvml {

using namespace ergometer::nvml;  // the ABI's types

// What is set on a GPU now.
struct GpuSettings {
  int limit_mw = 0, clock_low = 0, clock_high = 0, memory_low = 0, memory_high = 0, persistence = 0;
  int writes = 0;  // made so far, by everybody
  bool limit_was_set = false;
};

struct State {
  std::mutex mutex;
  std::optional<Scenario> scenario;
  int initialised = 0;
  bool stepped = false;
  std::int64_t mono_ns = 0, wall_ns = 0, start_ns = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> wall_offsets;  // stepped: wall minus monotonic, and since when
  std::uint64_t life = 0;  // counts scenarios, so that a call that slept through one does not touch the next
  std::unordered_map<std::string_view, std::uint64_t> calls;  // keys are string literals
  std::vector<GpuSettings> settings;                          // of this process; the state file's where there is one
};

// Never destroyed: calls may hang in other threads while the process ends.
State& state();
// Under the state's lock.
int load(State& s, const char* path);
std::int64_t wall_of(const State& s);
// What the wall clock showed at `t` seconds of the scenario: a step of the clock does not change what was stamped.
std::int64_t wall_at(const State& s, double t);

// Handles: 256 times (GPU + 1), plus 1 + its number for a slice.
inline Device handle_of(std::size_t gpu, std::size_t slice = 0) {
  return reinterpret_cast<Device>((gpu + 1) * 256 + slice);
}

// Whether a fault is on for this function at `t`, and its code.
bool strikes(const std::vector<Fault>& faults, std::string_view function, double t, Return& code);

// One call: counts it, waits and fails as the scenario says. Holds the lock while it lives.
class Call {
 public:
  explicit Call(std::string_view name);
  Call(std::string_view name, Device device);
  // For calls that name their GPU by other means than a handle.
  void use(std::size_t gpu_index);
  [[nodiscard]] bool failed() const { return code != Return::success; }

  Return code = Return::success;
  GpuScript* gpu = nullptr;
  const Slice* slice = nullptr;
  double t = 0;  // seconds of the scenario

 private:
  void begin();
  void find(Device device);
  void wait(std::vector<Block>& blocks);

  std::unique_lock<std::mutex> lock_;
  std::string_view name_;
};

// The settings as they are now, under the state's lock: what another process wrote is seen.
GpuSettings settings_of(const GpuScript& gpu);
double enforced_w(const GpuScript& gpu);
double management_w(const GpuScript& gpu);
// MHz that run while a clock of `free` MHz would.
double running_clock(const GpuScript& gpu, ClockKind kind, double free);

// What the sensors of a GPU show at `t`.
Return give_u32(const Shape& shape, double t, double factor, unsigned* out);
double last_update(double t, double period_ms);
double energy_mj(const GpuScript& gpu, double t);
double average_w(const GpuScript& gpu, const Shape& shape, double t);
bool has_average(const GpuScript& gpu);

template <class Record>
void give_memory(const GpuScript& gpu, double t, Record& out) {
  const double used = gpu.memory_used.at(t);
  out.total = static_cast<std::uint64_t>(gpu.memory_total);
  out.used = used >= 0x1p64 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(used);
  out.free = out.total - out.used;  // wraps below zero, as seen in the wild
}

}  // namespace fake_nvml
