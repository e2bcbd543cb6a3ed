// The queries of the sensors gpuN (read often, a few microseconds each) and gpuN-energy.
#include <fmt/format.h>

#include "device/nvml/query.hpp"

namespace ergometer::nvml {
namespace {

using std::chrono::milliseconds;

Channel power_channel(const GpuFacts& gpu, std::string column, Method method, std::optional<Nanos> window,
                      std::string note) {
  Channel channel = gpu_channel(gpu, std::move(column), Quantity::power, "W");
  channel.method = method;
  channel.period = gpu.power.period;
  channel.window = window;
  channel.resolution = 0.001;
  channel.max_power_w = gpu.info.max_power_limit_w;
  channel.note = std::move(note);
  return channel;
}

// Power of the module (GPU and CPU of a superchip) or of the GPU's memory: shown apart, never part of a total.
Channel part_channel(const GpuFacts& gpu, std::string column, Method method, Scope scope, std::string note) {
  Channel channel = power_channel(
      gpu, std::move(column), method,
      method == Method::average ? std::optional<Nanos>(std::chrono::seconds(1)) : gpu.power.instant_window,
      std::move(note));
  channel.scope = scope;
  channel.in_total = false;
  channel.max_power_w.reset();
  if (scope == Scope::module) channel.domain = fmt::format("module/{}", gpu.info.index);
  return channel;
}

std::string note_of(std::string_view source, std::string_view behaviour) {
  return behaviour.empty() ? std::string(source) : fmt::format("{}; {}", source, behaviour);
}

Query power_fields(const GpuFacts& gpu, const Driver::Access& access) {
  const Nanos second = std::chrono::seconds(1);
  const double limit = gpu.power_limit_w;
  return field_query(
      "",
      {{kFieldPowerAverage, kScopeGpu, 1000, limit,
        power_channel(gpu, "power_average_w", Method::average, second, "field 185: mean of the last second")},
       {kFieldPowerInstant, kScopeGpu, 1000, limit,
        power_channel(gpu, "power_instant_w", Method::integral, gpu.power.instant_window,
                      note_of("field 186: momentary", gpu.power.note))},
       {kFieldPowerAverage, kScopeMemory, 1000, limit,
        part_channel(gpu, "memory_power_average_w", Method::average, Scope::memory, "field 185, part of the GPU")},
       {kFieldPowerInstant, kScopeMemory, 1000, limit,
        part_channel(gpu, "memory_power_instant_w", Method::integral, Scope::memory, "field 186, part of the GPU")},
       {kFieldPowerAverage, kScopeModule, 1000, kNoLimit,
        part_channel(gpu, "module_power_average_w", Method::average, Scope::module, "field 185, contains the GPU")},
       {kFieldPowerInstant, kScopeModule, 1000, kNoLimit,
        part_channel(gpu, "module_power_instant_w", Method::integral, Scope::module, "field 186, contains the GPU")}},
      access);
}

Query power_usage(const GpuFacts& gpu, const Api& api) {
  const bool average = gpu.power.method == Method::average;
  return {"power",
          {power_channel(gpu, average ? "power_average_w" : "power_instant_w", gpu.power.method, gpu.power.window,
                         note_of("nvmlDeviceGetPowerUsage", average ? "mean of the last second" : gpu.power.note))},
          [ask = api.power_usage, limit = gpu.power_limit_w](const Driver::Access& a, Cells& cells, std::size_t first,
                                                             Readings&) {
            unsigned raw = 0;
            const Return code = ask(a.device, &raw);
            if (code == Return::success) cells.put(first, std::uint64_t{raw}, raw / 1000.0, limit);
            return code;
          }};
}

Query utilisation(const GpuFacts& gpu, const Api& api) {
  Channel active = gpu_channel(gpu, "gpu_active_ratio", Quantity::ratio, "1");
  active.note = "share of time in which any kernel ran; no measure of how well the GPU was used";
  Channel memory = gpu_channel(gpu, "memory_active_ratio", Quantity::ratio, "1");
  memory.note = "share of time in which device memory was read or written; not how full it is";
  return {"utilisation",
          {std::move(active), std::move(memory)},
          [ask = api.utilization](const Driver::Access& a, Cells& cells, std::size_t first, Readings&) {
            Utilization raw{};
            const Return code = ask(a.device, &raw);
            if (code != Return::success) return code;
            cells.put(first, std::uint64_t{raw.gpu}, raw.gpu / 100.0, 1);
            cells.put(first + 1, std::uint64_t{raw.memory}, raw.memory / 100.0, 1);
            return code;
          }};
}

// Bytes used and in all, by the newer call where there is one.
Return ask_memory(const Api& api, Device device, std::uint64_t& used, std::uint64_t& total) {
  if (api.memory_v2) {
    MemoryV2 raw{};
    raw.version = kMemoryV2Version;
    const Return code = api.memory_v2(device, &raw);
    used = raw.used;
    total = raw.total;
    if (code == Return::success || is_fatal(code) || !api.memory) return code;
  }
  Memory raw{};
  const Return code = api.memory(device, &raw);
  used = raw.used;
  total = raw.total;
  return code;
}

Query memory(const GpuFacts& gpu, const Api& api) {
  Channel channel = gpu_channel(gpu, "memory_used_bytes", Quantity::bytes, "B");
  channel.note = api.memory_v2 ? "without what the driver keeps for itself" : "with what the driver keeps for itself";
  return {"memory",
          {std::move(channel)},
          [over = false, index = gpu.info.index](const Driver::Access& a, Cells& cells, std::size_t first,
                                                 Readings& out) mutable {
            std::uint64_t used = 0, total = 0;
            const Return code = ask_memory(*a.api, a.device, used, total);
            if (code != Return::success) return code;
            cells.put(first, used, static_cast<double>(used), kNoLimit);
            const bool above = cells[first] && used > total;
            if (above && !over)
              out.event("note", fmt::format("GPU {}: {} bytes of memory used, more than its {}", index, used, total));
            over = above;
            return code;
          }};
}

Query clock(const GpuFacts& gpu, const Api& api, ClockKind kind, std::string column) {
  return {"",
          {gpu_channel(gpu, std::move(column), Quantity::frequency, "Hz")},
          [ask = api.clock, kind](const Driver::Access& a, Cells& cells, std::size_t first, Readings&) {
            unsigned mhz = 0;
            const Return code = ask(a.device, kind, &mhz);
            if (code == Return::success) cells.put(first, std::uint64_t{mhz}, mhz * 1e6, 1e11);
            return code;
          }};
}

Query temperature(const GpuFacts& gpu, const Api& api) {
  return {"",
          {gpu_channel(gpu, "temperature_celsius", Quantity::temperature, "Cel")},
          [ask = api.temperature](const Driver::Access& a, Cells& cells, std::size_t first, Readings&) {
            unsigned celsius = 0;
            const Return code = ask(a.device, 0, &celsius);
            if (code == Return::success) cells.put(first, std::uint64_t{celsius}, celsius, 200);
            return code;
          }};
}

}  // namespace

std::vector<Query> fast_queries(const GpuFacts& gpu, const Driver::Access& access) {
  const Api& api = *access.api;
  std::vector<Query> queries;
  Query fields = power_fields(gpu, access);
  const bool covered = has_column(fields, gpu.power.method == Method::average ? "power_average_w" : "power_instant_w");
  if (!fields.channels.empty()) queries.push_back(std::move(fields));
  // The classic call says the same as one of the fields; it is asked only where that field is missing.
  if (!covered && api.power_usage) queries.push_back(power_usage(gpu, api));
  if (api.utilization) queries.push_back(utilisation(gpu, api));
  if (api.memory || api.memory_v2) queries.push_back(memory(gpu, api));
  if (api.clock) {
    queries.push_back(clock(gpu, api, ClockKind::sm, "sm_clock_hz"));
    queries.push_back(clock(gpu, api, ClockKind::memory, "memory_clock_hz"));
  }
  if (api.temperature) queries.push_back(temperature(gpu, api));
  return queries;
}

std::vector<Query> energy_queries(const GpuFacts& gpu, const Driver::Access& access) {
  if (!access.api->energy) return {};
  Channel channel = gpu_channel(gpu, "energy_j", Quantity::energy, "J", Behaviour::counter);
  channel.method = Method::counter;
  channel.period = milliseconds(100);
  channel.resolution = 0.001;
  channel.max_power_w = gpu.info.max_power_limit_w;
  channel.note = "nvmlDeviceGetTotalEnergyConsumption, since the driver was loaded";
  return {{"energy counter",
           {std::move(channel)},
           [ask = access.api->energy](const Driver::Access& a, Cells& cells, std::size_t first, Readings&) {
             std::uint64_t mj = 0;
             const Return code = ask(a.device, &mj);
             if (code != Return::success) return code;
             // A counter runs through the 32-bit markers on its way: only all ones mean "no value" here.
             if (mj == ~std::uint64_t{0})
               cells.reject(first, "all ones mean no value");
             else
               cells.put(first, static_cast<double>(mj) / 1000.0, kNoLimit);
             return code;
           }}};
}

}  // namespace ergometer::nvml
