// A libnvidia-ml.so.1 for tests: NVML's binary interface over a scenario, in real or stepped time. Built twice; with
// FAKE_NVML_OLD it lacks what an old driver lacks. Here: enumeration, gauges, processes, slices.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "fakes/nvml/fake_driver.hpp"

using namespace fake_nvml;

namespace {

Return give_text(const std::string& text, char* out, unsigned length) {
  if (!out) return Return::invalid_argument;
  if (text.size() + 1 > length) return Return::insufficient_size;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return Return::success;
}

double usage_w(const GpuScript& gpu, double t) {
  return has_average(gpu) ? average_w(gpu, gpu.power, t) : gpu.power.at(last_update(t, gpu.update_ms));
}

}  // namespace

// --- Library and enumeration --------------------------------------------------------------------------------------

NVML_CALL VERSIONED(nvmlInit, _v2)() {
  State& s = state();
  {
    const std::lock_guard lock(s.mutex);
    if (!s.scenario && load(s, std::getenv("ERGOMETER_FAKE_NVML")) > 0) return Return::invalid_argument;
  }
  const Call call("nvmlInit");
  if (!call.failed()) ++s.initialised;
  return call.code;
}

NVML_CALL nvmlShutdown() {
  const Call call("nvmlShutdown");
  if (state().initialised > 0) --state().initialised;
  return call.code;
}

NVML_CALL nvmlSystemGetDriverVersion(char* out, unsigned length) {
  const Call call("nvmlSystemGetDriverVersion");
  return call.failed() ? call.code : give_text(state().scenario->driver_version, out, length);
}

NVML_CALL nvmlSystemGetNVMLVersion(char* out, unsigned length) {
  const Call call("nvmlSystemGetNVMLVersion");
  return call.failed() ? call.code : give_text(state().scenario->nvml_version, out, length);
}

NVML_CALL VERSIONED(nvmlSystemGetCudaDriverVersion, _v2)(int* out) {
  const Call call("nvmlSystemGetCudaDriverVersion");
  if (!call.failed()) *out = state().scenario->cuda_version;
  return call.code;
}

NVML_CALL VERSIONED(nvmlDeviceGetCount, _v2)(unsigned* out) {
  const Call call("nvmlDeviceGetCount");
  if (!call.failed()) *out = static_cast<unsigned>(state().scenario->gpus.size());
  return call.code;
}

NVML_CALL VERSIONED(nvmlDeviceGetHandleByIndex, _v2)(unsigned index, Device* out) {
  Call call("nvmlDeviceGetHandleByIndex");
  if (call.failed()) return call.code;
  if (index >= state().scenario->gpus.size()) return Return::invalid_argument;
  call.use(index);
  if (!call.failed()) *out = handle_of(index);
  return call.code;
}

NVML_CALL nvmlDeviceGetHandleByUUID(const char* uuid, Device* out) {
  Call call("nvmlDeviceGetHandleByUUID");
  if (call.failed()) return call.code;
  const auto& gpus = state().scenario->gpus;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i].uuid != uuid) continue;
    call.use(i);
    if (!call.failed()) *out = handle_of(i);
    return call.code;
  }
  return Return::not_found;
}

NVML_CALL nvmlDeviceGetUUID(Device device, char* out, unsigned length) {
  const Call call("nvmlDeviceGetUUID", device);
  return call.failed() ? call.code : give_text(call.slice ? call.slice->uuid : call.gpu->uuid, out, length);
}

NVML_CALL nvmlDeviceGetName(Device device, char* out, unsigned length) {
  const Call call("nvmlDeviceGetName", device);
  return call.failed() ? call.code : give_text(call.gpu->name, out, length);
}

NVML_CALL VERSIONED(nvmlDeviceGetPciInfo, _v3)(Device device, void* out) {
  const Call call("nvmlDeviceGetPciInfo", device);
  if (call.failed()) return call.code;
  PciInfo info{};
  const std::string& id = call.gpu->bus_id;
  const std::string legacy = id.size() > 12 ? id.substr(id.size() - 12) : id;
  std::memcpy(info.bus_id_legacy, legacy.data(), std::min(legacy.size(), sizeof info.bus_id_legacy - 1));
  std::memcpy(info.bus_id, id.data(), std::min(id.size(), sizeof info.bus_id - 1));
#ifdef FAKE_NVML_OLD
  std::memcpy(out, &info, sizeof info - sizeof info.bus_id);
#else
  std::memcpy(out, &info, sizeof info);
#endif
  return call.code;
}

NVML_CALL nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  const Call call("nvmlDeviceGetCudaComputeCapability", device);
  if (call.failed()) return call.code;
  *major = call.gpu->compute_major;
  *minor = call.gpu->compute_minor;
  return call.code;
}

// --- Gauges -------------------------------------------------------------------------------------------------------

NVML_CALL nvmlDeviceGetMemoryInfo(Device device, Memory* out) {
  const Call call("nvmlDeviceGetMemoryInfo", device);
  if (call.failed()) return call.code;
  give_memory(*call.gpu, call.t, *out);
  return call.code;
}

NVML_CALL nvmlDeviceGetUtilizationRates(Device device, Utilization* out) {
  const Call call("nvmlDeviceGetUtilizationRates", device);
  if (call.failed()) return call.code;
  const Return code = give_u32(call.gpu->utilisation, call.t, 1, &out->gpu);
  return code == Return::success ? give_u32(call.gpu->memory_utilisation, call.t, 1, &out->memory) : code;
}

NVML_CALL nvmlDeviceGetClockInfo(Device device, ClockKind kind, unsigned* out) {
  const Call call("nvmlDeviceGetClockInfo", device);
  if (call.failed()) return call.code;
  const Return code = give_u32(kind == ClockKind::memory ? call.gpu->memory_clock : call.gpu->sm_clock, call.t, 1, out);
  if (code == Return::success) *out = static_cast<unsigned>(running_clock(*call.gpu, kind, *out));
  return code;
}

NVML_CALL nvmlDeviceGetTemperature(Device device, unsigned, unsigned* out) {
  const Call call("nvmlDeviceGetTemperature", device);
  return call.failed() ? call.code : give_u32(call.gpu->temperature, call.t, 1, out);
}

NVML_CALL nvmlDeviceGetPowerUsage(Device device, unsigned* out) {
  const Call call("nvmlDeviceGetPowerUsage", device);
  if (!call.failed()) *out = static_cast<unsigned>(std::llround(usage_w(*call.gpu, call.t) * 1000));
  return call.code;
}

NVML_CALL nvmlDeviceGetTotalEnergyConsumption(Device device, std::uint64_t* out) {
  const Call call("nvmlDeviceGetTotalEnergyConsumption", device);
  if (!call.failed()) *out = static_cast<std::uint64_t>(energy_mj(*call.gpu, call.t));
  return call.code;
}

NVML_CALL nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* out) {
  const Call call("nvmlDeviceGetEnforcedPowerLimit", device);
  if (!call.failed()) *out = static_cast<unsigned>(enforced_w(*call.gpu) * 1000);
  return call.code;
}

NVML_CALL nvmlDeviceGetPowerManagementDefaultLimit(Device device, unsigned* out) {
  const Call call("nvmlDeviceGetPowerManagementDefaultLimit", device);
  if (!call.failed()) *out = static_cast<unsigned>(call.gpu->default_w * 1000);
  return call.code;
}

NVML_CALL nvmlDeviceGetPowerManagementLimitConstraints(Device device, unsigned* low, unsigned* high) {
  const Call call("nvmlDeviceGetPowerManagementLimitConstraints", device);
  if (call.failed()) return call.code;
  *low = static_cast<unsigned>(call.gpu->min_w * 1000);
  *high = static_cast<unsigned>(call.gpu->max_w * 1000);
  return call.code;
}

NVML_CALL nvmlDeviceGetCurrentClocksThrottleReasons(Device device, std::uint64_t* out) {
  const Call call("nvmlDeviceGetCurrentClocksThrottleReasons", device);
  if (!call.failed()) *out = call.gpu->reasons;
  return call.code;
}

#ifndef FAKE_NVML_OLD

NVML_CALL nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2* out) {
  const Call call("nvmlDeviceGetMemoryInfo", device);
  if (call.failed()) return call.code;
  if (out->version != kMemoryV2Version) return Return::invalid_argument;
  out->reserved = 0;
  give_memory(*call.gpu, call.t, *out);
  return call.code;
}

NVML_CALL nvmlDeviceGetArchitecture(Device device, unsigned* out) {
  const Call call("nvmlDeviceGetArchitecture", device);
  if (!call.failed()) *out = call.gpu->architecture;
  return call.code;
}

// --- Processes and slices -----------------------------------------------------------------------------------------

NVML_CALL nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, ProcessInfo* out) {
  const Call call("nvmlDeviceGetComputeRunningProcesses", device);
  if (call.failed()) return call.code;
  const auto& processes = call.gpu->processes;
  const unsigned room = *count;
  *count = static_cast<unsigned>(processes.size());
  if (room < processes.size()) return Return::insufficient_size;
  for (std::size_t i = 0; i < processes.size(); ++i)
    out[i] = {processes[i].pid, processes[i].bytes, 0xffffffff, 0xffffffff};
  return Return::success;
}

NVML_CALL nvmlDeviceGetProcessUtilization(Device device, ProcessUtilization* out, unsigned* count, std::uint64_t) {
  const Call call("nvmlDeviceGetProcessUtilization", device);
  if (call.failed()) return call.code;
  const auto now_us = static_cast<std::uint64_t>(wall_of(state()) / 1000);
  std::vector<ProcessUtilization> samples;
  for (const auto& process : call.gpu->processes)
    if (process.active) samples.push_back({process.pid, now_us, process.sm, process.memory, 0, 0});
  if (samples.empty()) {
    const unsigned pid = call.gpu->processes.empty() ? 4242 : call.gpu->processes.front().pid;
    ProcessUtilization sample{pid, now_us, 0, 0, 0, 0};
    const Return code = give_u32(call.gpu->process_utilisation, call.t, 1, &sample.sm);
    if (code != Return::success) return code;
    samples.push_back(sample);
  }
  const unsigned room = *count;
  *count = static_cast<unsigned>(samples.size());
  if (room < samples.size() || !out) return Return::insufficient_size;
  std::copy(samples.begin(), samples.end(), out);
  return Return::success;
}

NVML_CALL nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  const Call call("nvmlDeviceGetMigMode", device);
  if (!call.failed()) *current = *pending = call.gpu->mig ? 1 : 0;
  return call.code;
}

NVML_CALL nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned* out) {
  const Call call("nvmlDeviceGetMaxMigDeviceCount", device);
  if (!call.failed()) *out = 7;
  return call.code;
}

NVML_CALL nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device* out) {
  const Call call("nvmlDeviceGetMigDeviceHandleByIndex", device);
  if (call.failed()) return call.code;
  if (index >= call.gpu->slices.size()) return Return::not_found;
  *out = handle_of(static_cast<std::size_t>(call.gpu - state().scenario->gpus.data()), index + 1);
  return call.code;
}

NVML_CALL nvmlDeviceGetGpuInstanceId(Device device, unsigned* out) {
  const Call call("nvmlDeviceGetGpuInstanceId", device);
  if (call.failed() || !call.slice) return call.failed() ? call.code : Return::not_supported;
  *out = call.slice->gpu_instance;
  return call.code;
}

NVML_CALL nvmlDeviceGetComputeInstanceId(Device device, unsigned* out) {
  const Call call("nvmlDeviceGetComputeInstanceId", device);
  if (call.failed() || !call.slice) return call.failed() ? call.code : Return::not_supported;
  *out = call.slice->compute_instance;
  return call.code;
}

NVML_CALL nvmlDeviceGetAttributes_v2(Device device, DeviceAttributes* out) {
  const Call call("nvmlDeviceGetAttributes", device);
  if (call.failed() || !call.slice || call.slice->multiprocessors == 0)
    return call.failed() ? call.code : Return::not_supported;
  *out = {};
  out->multiprocessors = call.slice->multiprocessors;
  out->memory_mb = 10240;
  return call.code;
}

#endif  // FAKE_NVML_OLD
