#include "fakes/nvml/fake_driver.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <thread>

#include "fakes/nvml/fake_nvml.h"

namespace fake_nvml {
namespace {

std::int64_t read_clock(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return static_cast<std::int64_t>(ts.tv_sec) * 1'000'000'000 + ts.tv_nsec;
}

std::int64_t mono_of(const State& s) { return s.stepped ? s.mono_ns : read_clock(CLOCK_MONOTONIC); }
double seconds_of(const State& s) { return static_cast<double>(mono_of(s) - s.start_ns) * 1e-9; }

}  // namespace

State& state() {
  static State* instance = new State;
  return *instance;
}

std::int64_t wall_of(const State& s) { return s.stepped ? s.wall_ns : read_clock(CLOCK_REALTIME); }

std::int64_t wall_at(const State& s, double t) {
  const std::int64_t mono = s.start_ns + std::llround(t * 1e9);
  if (!s.stepped) return wall_of(s) - mono_of(s) + mono;
  std::int64_t offset = s.wall_ns - s.mono_ns;
  for (const auto& [since, value] : s.wall_offsets)
    if (since <= mono) offset = value;
  return mono + offset;
}

int load(State& s, const char* path) {
  std::vector<std::string> errors;
  s.scenario = load_scenario(path ? path : "", errors);
  ++s.life;
  s.settings.clear();
  s.start_ns = mono_of(s);
  for (const auto& error : errors) std::fprintf(stderr, "fake NVML: not understood: %s\n", error.c_str());
  return static_cast<int>(errors.size());
}

bool strikes(const std::vector<Fault>& faults, std::string_view function, double t, Return& code) {
  for (const auto& fault : faults) {
    if (fault.function != "*" && fault.function != function) continue;
    if (t + 1e-9 < fault.from || t + 1e-9 >= fault.to) continue;
    code = static_cast<Return>(fault.code);
    return true;
  }
  return false;
}

Call::Call(std::string_view name) : lock_(state().mutex), name_(name) { begin(); }

Call::Call(std::string_view name, Device device) : lock_(state().mutex), name_(name) {
  begin();
  if (!failed()) find(device);
}

void Call::use(std::size_t gpu_index) {
  gpu = &state().scenario->gpus[gpu_index];
  wait(gpu->blocks);
  if (!failed()) strikes(gpu->faults, name_, t, code);
  if (!failed() && gpu->unsupported.contains(std::string(name_))) code = Return::not_supported;
}

void Call::begin() {
  State& s = state();
  ++s.calls[name_];
  if (!s.scenario) {
    code = Return::uninitialized;
    return;
  }
  t = seconds_of(s);
  wait(s.scenario->blocks);
  if (failed() || strikes(s.scenario->faults, name_, t, code)) return;
  if (s.initialised == 0 && name_ != "nvmlInit") code = Return::uninitialized;
}

void Call::find(Device device) {
  const auto value = reinterpret_cast<std::uintptr_t>(device);
  auto& gpus = state().scenario->gpus;
  const std::size_t index = value / 256 - 1, part = value % 256;
  if (value < 256 || index >= gpus.size() || part > gpus[index].slices.size()) {
    code = Return::invalid_argument;
    return;
  }
  if (part > 0) slice = &gpus[index].slices[part - 1];
  use(index);
}

void Call::wait(std::vector<Block>& blocks) {
  for (auto& block : blocks) {
    if (block.done || t < block.at || (block.function != "*" && block.function != name_)) continue;
    block.done = true;
    const std::chrono::duration<double> time(block.seconds);
    const std::uint64_t life = state().life;
    lock_.unlock();
    std::this_thread::sleep_for(time);
    lock_.lock();
    t = seconds_of(state());
    if (life != state().life) code = Return::uninitialized;
    return;
  }
}

Return give_u32(const Shape& shape, double t, double factor, unsigned* out) {
  const double value = shape.at(t);
  if (std::isnan(value)) return Return::not_found;
  *out = static_cast<unsigned>(std::llround(value * factor));
  return Return::success;
}

double last_update(double t, double period_ms) {
  const double period = period_ms / 1000;
  return period > 0 ? std::floor(t / period + 1e-9) * period : t;
}

double energy_mj(const GpuScript& gpu, double t) {
  if (gpu.energy_raw) return gpu.energy_mj.at(t);
  return gpu.energy_start_mj + std::floor(gpu.power.integral(last_update(t, gpu.update_ms)) * 1000 + 1e-6);
}

double average_w(const GpuScript& gpu, const Shape& shape, double t) {
  const double end = last_update(t, gpu.update_ms);
  return shape.mean(end - gpu.average_ms / 1000, end);
}

bool has_average(const GpuScript& gpu) {
  return gpu.architecture >= kAmpere && !(gpu.compute_major == 8 && gpu.compute_minor == 0);
}

}  // namespace fake_nvml

using namespace fake_nvml;

#define CONTROL extern "C" __attribute__((visibility("default")))

CONTROL int fake_nvml_load(const char* path) {
  const std::lock_guard lock(state().mutex);
  return load(state(), path);
}

CONTROL void fake_nvml_reset(void) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.scenario.reset();
  ++s.life;
  s.initialised = 0;
  s.stepped = false;
  s.calls.clear();
  s.wall_offsets.clear();
}

CONTROL void fake_nvml_set_time_ns(std::int64_t mono, std::int64_t wall) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.stepped = true;
  s.mono_ns = mono;
  s.wall_ns = wall;
  if (s.wall_offsets.empty() || s.wall_offsets.back().second != wall - mono)
    s.wall_offsets.emplace_back(mono, wall - mono);
}

CONTROL std::uint64_t fake_nvml_calls(const char* function) {
  const std::lock_guard lock(state().mutex);
  const auto it = state().calls.find(function);
  return it == state().calls.end() ? 0 : it->second;
}
