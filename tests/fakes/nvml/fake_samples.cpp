// The fake NVML's field values, sample buffers and GPM; an old driver has none of them.
#ifndef FAKE_NVML_OLD
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "fakes/nvml/fake_driver.hpp"

using namespace fake_nvml;

namespace {

constexpr int kRing = 119, kUtilisationRing = 71;

}  // namespace

// --- Fields and samples -------------------------------------------------------------------------------------------

namespace {

Return give_field(const GpuScript& gpu, double t, FieldValue& field) {
  const auto watts = [&](double w) {
    field.type = ValueType::u32;
    field.value.u32 = static_cast<std::uint32_t>(std::llround(w * 1000));
    return Return::success;
  };
  const auto wide = [&](double value) {
    field.type = ValueType::u64;
    field.value.u64 = static_cast<std::uint64_t>(value);
    return Return::success;
  };
  if (gpu.unsupported.contains(fmt::format("field:{}", field.field)) ||
      gpu.unsupported.contains(fmt::format("field:{}:{}", field.field, field.scope)))
    return Return::not_supported;
  const bool whole = field.scope == kScopeGpu;
  switch (field.field) {
    case 83:
    case 191:
      return whole ? wide(energy_mj(gpu, t)) : Return::not_supported;
    case kFieldMemoryTemperature:
      field.type = ValueType::u32;
      return give_u32(gpu.memory_temperature, t, 1, &field.value.u32);
    case kFieldPowerAverage:
      if (!has_average(gpu) || field.scope == kScopeModule) return Return::not_supported;
      return watts(average_w(gpu, whole ? gpu.power : gpu.memory_power, t));
    case kFieldPowerInstant:
      return whole ? watts(gpu.power.at(last_update(t, gpu.update_ms))) : Return::not_supported;
    case kFieldPowerLimit:
      return watts(enforced_w(gpu));
    case kFieldPowerLimitRequested:
      return watts(management_w(gpu));
    default:
      break;
  }
  const bool counter = (field.field >= 74 && field.field <= 81) || (field.field >= 269 && field.field <= 271);
  if (!counter) return Return::not_supported;
  const auto it = gpu.throttle_s.find(field.field);
  return wide(it == gpu.throttle_s.end() ? 0 : std::round(it->second.integral(t) * 1e9));
}

// Times and values of a ring of samples taken each `period_s` since second 0, oldest first. Nothing was sampled
// while the GPU was away.
std::vector<Sample> ring_of(const GpuScript& gpu, const Shape& shape, double factor, double period_s, int length,
                            double t) {
  std::vector<Sample> ring;
  const auto newest = static_cast<std::int64_t>(std::floor(t / period_s + 1e-9));
  for (std::int64_t k = std::max<std::int64_t>(0, newest - length + 1); k <= newest; ++k) {
    const double at = static_cast<double>(k) * period_s;
    Return fault{};
    const double value = shape.at(at);
    if (std::isnan(value) || strikes(gpu.faults, "", at, fault) || strikes(state().scenario->faults, "", at, fault))
      continue;
    Sample sample{};
    sample.timestamp_us = static_cast<std::uint64_t>(wall_at(state(), at) / 1000);
    sample.value.u32 = static_cast<std::uint32_t>(std::llround(value * factor));
    ring.push_back(sample);
  }
  return ring;
}

}  // namespace

NVML_CALL nvmlDeviceGetFieldValues(Device device, int count, FieldValue* fields) {
  const Call call("nvmlDeviceGetFieldValues", device);
  if (call.failed()) return call.code;
  for (int i = 0; i < count; ++i) {
    fields[i].timestamp_us = wall_of(state()) / 1000;
    fields[i].latency_us = 1;
    fields[i].status = give_field(*call.gpu, call.t, fields[i]);
  }
  return call.code;
}

NVML_CALL nvmlDeviceGetSamples(Device device, Sampling kind, std::uint64_t since_us, ValueType* type, unsigned* count,
                               Sample* out) {
  const Call call("nvmlDeviceGetSamples", device);
  if (call.failed()) return call.code;
  GpuScript& gpu = *call.gpu;
  if (gpu.unsupported.contains(fmt::format("samples:{}", static_cast<unsigned>(kind)))) return Return::not_supported;
  if (kind > Sampling::memory_utilization) return Return::not_found;
  auto ring = kind == Sampling::power
                  ? ring_of(gpu, gpu.power, 1000, gpu.sample_ms / 1000, kRing, call.t)
                  : ring_of(gpu, kind == Sampling::gpu_utilization ? gpu.utilisation : gpu.memory_utilisation, 1,
                            gpu.utilisation_sample_ms / 1000, kUtilisationRing, call.t);
  std::erase_if(ring, [&](const Sample& sample) { return sample.timestamp_us <= since_us; });
  if (ring.empty()) return Return::not_found;
  *type = ValueType::u32;
  if (!out) {
    *count = kRing + 1;
    return Return::success;
  }
  // As driver 580 does: what fits, from the oldest on.
  *count = std::min(*count, static_cast<unsigned>(ring.size()));
  std::copy_n(ring.begin(), *count, out);
  return Return::success;
}

// --- GPM ----------------------------------------------------------------------------------------------------------

namespace {

struct GpmMoment {
  const GpuScript* gpu = nullptr;
  double t = 0;
  std::optional<unsigned> instance;  // of a slice
};

GpmMoment* moment_of(GpmSample sample) { return reinterpret_cast<GpmMoment*>(sample); }

}  // namespace

NVML_CALL nvmlGpmQueryDeviceSupport(Device device, GpmSupport* out) {
  const Call call("nvmlGpmQueryDeviceSupport", device);
  if (!call.failed()) out->supported = call.gpu->gpm.empty() && call.gpu->slice_gpm.empty() ? 0 : 1;
  return call.code;
}

NVML_CALL nvmlGpmSampleAlloc(GpmSample* out) {
  const Call call("nvmlGpmSampleAlloc");
  if (!call.failed()) *out = reinterpret_cast<GpmSample>(new GpmMoment);
  return call.code;
}

NVML_CALL nvmlGpmSampleFree(GpmSample sample) {
  const Call call("nvmlGpmSampleFree");
  delete moment_of(sample);
  return call.code;
}

NVML_CALL nvmlGpmSampleGet(Device device, GpmSample sample) {
  const Call call("nvmlGpmSampleGet", device);
  if (!call.failed()) *moment_of(sample) = {call.gpu, call.t, std::nullopt};
  return call.code;
}

NVML_CALL nvmlGpmMigSampleGet(Device device, unsigned instance, GpmSample sample) {
  const Call call("nvmlGpmMigSampleGet", device);
  if (!call.failed()) *moment_of(sample) = {call.gpu, call.t, instance};
  return call.code;
}

NVML_CALL nvmlGpmMetricsGet(GpmRequest* request) {
  const Call call("nvmlGpmMetricsGet");
  if (call.failed()) return call.code;
  const GpmMoment &from = *moment_of(request->first), &to = *moment_of(request->second);
  if (request->version != 1 || !from.gpu || from.gpu != to.gpu || from.instance != to.instance || to.t <= from.t)
    return Return::invalid_argument;
  auto* metrics = reinterpret_cast<GpmMetric*>(request + 1);
  for (unsigned i = 0; i < request->count; ++i) {
    const Shape* shape = nullptr;
    if (to.instance) {
      const auto it = to.gpu->slice_gpm.find({*to.instance, metrics[i].id});
      if (it != to.gpu->slice_gpm.end()) shape = &it->second;
    } else if (const auto it = to.gpu->gpm.find(metrics[i].id); it != to.gpu->gpm.end()) {
      shape = &it->second;
    }
    metrics[i].status = shape ? Return::success : Return::not_supported;
    if (shape) metrics[i].value = shape->mean(from.t, to.t);
  }
  return Return::success;
}

#endif  // FAKE_NVML_OLD
