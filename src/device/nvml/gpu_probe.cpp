#include "device/nvml/gpu_probe.hpp"

#include <fmt/format.h>

#include <cstring>

#include "device/nvml/buffers.hpp"
#include "device/nvml/query.hpp"

namespace ergometer::nvml {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double kUnknownMaxPower = 2000;  // W, when the device tells no limit

std::string gpu_name(const GpuInfo& info) { return fmt::format("GPU {}", info.index); }

void absent(GpuParts& parts, std::string_view what, Return code) {
  std::string remedy;
  if (code == Return::no_permission) remedy = "give this user access to /dev/nvidia*, or run as root";
  parts.absences.push_back(
      {"nvml", fmt::format("{} {}", gpu_name(parts.info), what), to_text(code), std::move(remedy)});
}

std::string text_of(Return (*ask)(Device, char*, unsigned), Device device) {
  char text[96] = {};
  if (!ask || ask(device, text, sizeof text - 1) != Return::success) return {};
  return text;
}

std::optional<double> watts_of(Return (*ask)(Device, unsigned*), Device device) {
  unsigned mw = 0;
  if (!ask || ask(device, &mw) != Return::success || is_blank(std::uint64_t{mw})) return std::nullopt;
  return mw / 1000.0;
}

std::string bus_id_of(const Api& api, Device device) {
  // Every layout of this record begins with the short form; the buffer has room for any of them.
  alignas(8) char buffer[256] = {};
  if (!api.pci_info || api.pci_info(device, buffer) != Return::success) return {};
  PciInfo info;
  std::memcpy(&info, buffer, sizeof info);
  info.bus_id[sizeof info.bus_id - 1] = info.bus_id_legacy[sizeof info.bus_id_legacy - 1] = '\0';
  return api.pci_info_v3 && info.bus_id[0] ? info.bus_id : info.bus_id_legacy;
}

void describe(GpuFacts& facts, const Api& api, Device device) {
  GpuInfo& info = facts.info;
  info.name = text_of(api.name, device);
  info.pci_bus_id = bus_id_of(api, device);
  Memory memory{};
  if (api.memory && api.memory(device, &memory) == Return::success && !is_blank(memory.total))
    info.memory_bytes = static_cast<double>(memory.total);
  info.power_limit_w = watts_of(api.enforced_limit, device);
  info.default_power_limit_w = watts_of(api.default_limit, device);
  unsigned low = 0, high = 0;
  if (api.limit_constraints && api.limit_constraints(device, &low, &high) == Return::success &&
      !is_blank(std::uint64_t{low}) && !is_blank(std::uint64_t{high}) && low <= high) {
    info.min_power_limit_w = low / 1000.0;
    info.max_power_limit_w = high / 1000.0;
  }
  unsigned current = 0, pending = 0;
  info.mig = api.mig_mode && api.mig_mode(device, &current, &pending) == Return::success && current == 1;
  if (info.mig) info.note = "cut into MIG slices: power and energy are of the whole GPU, shared by them";

  double highest = 0;
  for (const auto& limit : {info.max_power_limit_w, info.default_power_limit_w, info.power_limit_w})
    if (limit) highest = std::max(highest, *limit);
  facts.power_limit_w = 2 * (highest > 0 ? highest : kUnknownMaxPower);
  unsigned architecture = kArchitectureUnknown;
  int major = 0, minor = 0;
  if (api.architecture) api.architecture(device, &architecture);
  if (api.compute_capability) api.compute_capability(device, &major, &minor);
  facts.power = power_behaviour(architecture, major, minor);
}

std::vector<MigInstance> slices_of(const Api& api, Device device, int parent) {
  std::vector<MigInstance> slices;
  unsigned count = 0;
  if (!api.max_mig_devices || !api.mig_device || api.max_mig_devices(device, &count) != Return::success) return slices;
  for (unsigned i = 0; i < std::min(count, 64U); ++i) {
    Device slice = nullptr;
    if (api.mig_device(device, i, &slice) != Return::success) continue;
    MigInstance instance{text_of(api.uuid, slice), parent, 0, 0};
    if (api.gpu_instance) api.gpu_instance(slice, &instance.gpu_instance);
    if (api.compute_instance) api.compute_instance(slice, &instance.compute_instance);
    slices.push_back(std::move(instance));
  }
  return slices;
}

// Asks each query once and keeps those that can have a value here. Returns a fatal code if the GPU went away.
Return keep_supported(GpuParts& parts, const Driver::Access& access, std::vector<Query>& queries) {
  std::vector<Query> kept;
  Return lost = Return::success;
  for (auto& query : queries) {
    std::vector<std::string> columns;
    for (const auto& channel : query.channels) columns.push_back(channel.column);
    Cells cells(std::move(columns));
    cells.begin();
    Readings scratch;
    // A copy is asked: what a query remembers (and reports only once) begins with the sensor's first read.
    const Return code = Query(query).ask(access, cells, 0, scratch);
    if (code == Return::gpu_is_lost) lost = code;
    if (is_unsupported(code) || is_fatal(code)) {
      if (!query.what.empty()) absent(parts, query.what, code);
      continue;
    }
    kept.push_back(std::move(query));
  }
  queries = std::move(kept);
  return lost;
}

// Absences of functions that the library itself does not have.
void note_missing_functions(GpuParts& parts, const Api& api) {
  const auto missing = [&](const void* entry, const char* what) {
    if (entry) return;
    parts.absences.push_back({"nvml", fmt::format("{} {}", gpu_name(parts.info), what),
                              "the driver's NVML library lacks the function", "a newer NVIDIA driver has it"});
  };
  missing(reinterpret_cast<const void*>(api.energy), "energy counter");
  missing(reinterpret_cast<const void*>(api.samples), "power samples");
  missing(reinterpret_cast<const void*>(api.field_values), "average and instant power fields");
  missing(reinterpret_cast<const void*>(api.compute_processes), "process list");
  missing(reinterpret_cast<const void*>(api.gpm_metrics), "GPM activity metrics");
}

SensorInfo sensor_info(std::string name, Nanos interval, const std::vector<Query>& queries) {
  SensorInfo info;
  info.name = std::move(name);
  info.interface = "nvml";
  info.interval = interval;
  for (const auto& query : queries)
    info.channels.insert(info.channels.end(), query.channels.begin(), query.channels.end());
  return info;
}

class Builder {
 public:
  Builder(const std::shared_ptr<Driver>& driver, GpuParts& parts) : driver_(driver), parts_(parts) {}

  void polled(std::string suffix, Nanos interval, std::vector<Query> queries, std::string note = {},
              std::string thread = {}) {
    if (queries.empty()) return;
    auto info = sensor_info(fmt::format("gpu{}{}", parts_.info.index, suffix), interval, queries);
    info.note = std::move(note);
    parts_.sensors.push_back(
        std::make_shared<QuerySensor>(driver_, parts_.gpu, std::move(info), std::move(queries), std::move(thread)));
  }

  void buffered(std::string suffix, Nanos interval, std::vector<BufferColumn> columns, std::string note) {
    if (columns.empty()) return;
    auto info = sensor_info(fmt::format("gpu{}{}", parts_.info.index, suffix), interval, {});
    for (const auto& column : columns) info.channels.push_back(column.channel);
    info.own_time = true;
    info.note = std::move(note);
    parts_.sensors.push_back(std::make_shared<BufferSensor>(driver_, parts_.gpu, std::move(info), std::move(columns)));
  }

 private:
  const std::shared_ptr<Driver>& driver_;
  GpuParts& parts_;
};

bool measures_power(const std::vector<Query>& queries) {
  for (const auto& query : queries)
    for (const auto& channel : query.channels)
      if (channel.method && channel.in_total) return true;
  return false;
}

void lose(GpuParts& parts, Return code) {
  parts.info.state = "lost";
  parts.sensors.clear();
  parts.absences.clear();
  parts.absences.push_back({"nvml", gpu_name(parts.info), to_text(code),
                            "look at dmesg for Xid messages; the GPU needs a reset or the node a reboot"});
}

void build_sensors(const std::shared_ptr<Driver>& driver, const Driver::Access& access, GpuFacts& facts,
                   GpuParts& parts, std::optional<Nanos> interval) {
  auto fast = fast_queries(facts, access);
  auto energy = energy_queries(facts, access);
  auto slow = slow_queries(facts, access);
  auto activity = activity_queries(facts, driver, access);
  for (auto* queries : {&fast, &energy, &slow, &activity})
    if (const Return lost = keep_supported(parts, access, *queries); lost != Return::success) return lose(parts, lost);
  note_missing_functions(parts, *access.api);

  std::vector<BufferColumn> power, utilisation;
  if (access.api->samples) {
    const auto probe = probe_buffer(access, Sampling::power);
    if (probe.code == Return::success)
      power.push_back(power_buffer(facts, probe.period));
    else
      absent(parts, "power samples", probe.code);
    for (const Sampling kind : {Sampling::gpu_utilization, Sampling::memory_utilization})
      if (const auto found = probe_buffer(access, kind); found.code == Return::success)
        utilisation.push_back(utilisation_buffer(facts, kind, found.period));
  }
  // The counter costs 3 to 16 ms a read, so it is read rarely where the samples already tell the energy of every
  // region.
  const Nanos energy_interval = power.empty() ? seconds(1) : seconds(5);
  // Without the samples the gauges give the power; with them they tell what changes more slowly (NVML averages its
  // utilisation over 1/6 to 1 s), at half the cost.
  // Then they also share one thread for all GPUs: a GPU that blocks delays gauges, never energy.
  const char* gauge_thread = power.empty() ? "" : "nvml-gauges";
  const Nanos gauge_interval = interval.value_or(power.empty() ? milliseconds(100) : milliseconds(200));
  const bool measurable = !power.empty() || !energy.empty() || measures_power(fast);

  Builder builder(driver, parts);
  builder.buffered("-samples", milliseconds(500), std::move(power), "read twice a second; the ring holds about 2 s");
  builder.polled("", gauge_interval, std::move(fast), {}, gauge_thread);
  builder.polled("-energy", energy_interval, std::move(energy), "read rarely: a read takes 3 to 16 ms");
  builder.buffered("-utilisation", seconds(5), std::move(utilisation), "the ring holds about 14 s");
  builder.polled("-activity", seconds(1), std::move(activity));
  builder.polled("-slow", seconds(5), std::move(slow), "some of its fields take milliseconds to read");
  if (!measurable) {
    parts.info.state = "not measurable";
    parts.absences.push_back(
        {"nvml", gpu_name(parts.info) + " power and energy", "neither power nor energy is supported by this GPU", ""});
  }
}

}  // namespace

GpuParts probe_gpu(const std::shared_ptr<Driver>& driver, int index, std::optional<Nanos> interval) {
  GpuParts parts;
  parts.info.index = index;
  parts.gpu = std::make_shared<Gpu>();
  parts.gpu->index = index;
  const Api& api = driver->api();
  Device device = nullptr;
  if (const Return code = api.handle_by_index(static_cast<unsigned>(index), &device); code != Return::success) {
    lose(parts, code);
    if (!is_fatal(code)) parts.info.state = "not measurable";
    if (code == Return::no_permission)
      parts.absences.back().remedy = "give this user access to the device files /dev/nvidia*";
    return parts;
  }
  GpuFacts facts;
  facts.info.index = index;
  facts.info.uuid = text_of(api.uuid, device);
  facts.domain = fmt::format("gpu/{}", index);
  describe(facts, api, device);
  parts.info = facts.info;
  parts.gpu->uuid = facts.info.uuid;
  parts.gpu->handle = device;
  if (facts.info.mig) parts.slices = slices_of(api, device, index);

  const auto access = driver->access(*parts.gpu);
  if (!access) {
    lose(parts, Return::unknown);
    return parts;
  }
  // A device that fell off still has a name and a UUID in the driver's memory: power tells.
  if (unsigned mw = 0; api.power_usage) {
    const Return code = api.power_usage(device, &mw);
    if (is_fatal(code)) {
      lose(parts, code);
      return parts;
    }
  }
  build_sensors(driver, *access, facts, parts, interval);
  return parts;
}

GpuParts silent_gpu(int index) {
  GpuParts parts;
  parts.info.index = index;
  parts.info.state = "not measurable";
  parts.absences.push_back({"nvml", gpu_name(parts.info), "the driver gave no answer in time",
                            "look at dmesg for Xid messages; the GPU may need a reset"});
  return parts;
}

}  // namespace ergometer::nvml
