// The queries of the sensors gpuN-slow (throttling, limits, processes, MIG mode) and gpuN-activity (GPM metrics).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/number.hpp"
#include "device/nvml/query.hpp"

namespace ergometer::nvml {
namespace {

// --- Throttling and limits ---------------------------------------------------------------------------------------

struct ThrottleField {
  Field field;
  const char* column;
  const char* cause;  // for events; null: a level that is reached in normal work and tells of no fault
};
constexpr ThrottleField kThrottleFields[] = {
    {kFieldViolationPower, "throttle_power_cap_s", "power cap"},
    {kFieldViolationThermal, "throttle_thermal_s", "temperature"},
    {kFieldViolationSyncBoost, "throttle_sync_boost_s", "sync boost"},
    {kFieldViolationBoardLimit, "throttle_board_limit_s", "board limit"},
    {kFieldViolationLowUtilization, "throttle_low_utilisation_s", nullptr},
    {kFieldViolationReliability, "throttle_reliability_s", "reliability"},
    {kFieldViolationAppClocks, "below_app_clocks_s", nullptr},
    {kFieldViolationBaseClocks, "below_base_clocks_s", nullptr},
    {kFieldSwThermalSlowdown, "throttle_sw_thermal_s", "temperature (software)"},
    {kFieldHwThermalSlowdown, "throttle_hw_thermal_s", "temperature (hardware)"},
    {kFieldHwPowerBrake, "throttle_power_brake_s", "power brake"},
};

// Turns the growth of one counter into a begin and an end. Three reads without growth end it, so that a limit that
// is touched every other second does not fill the event file.
struct Throttle {
  std::size_t column = 0;  // within the query
  const char* cause = "";
  std::optional<double> last;
  double total = 0;
  int quiet = 0;
  bool on = false;

  void observe(std::optional<double> spent_s, int gpu, Readings& out) {
    if (!spent_s) return;
    const double rise = last ? *spent_s - *last : 0;
    last = spent_s;
    if (rise > 0) {
      total += rise;
      quiet = 0;
      if (!on) out.event("throttle", fmt::format("GPU {}: {}: begins", gpu, cause));
      on = true;
    } else if (on && ++quiet == 3) {
      out.event("throttle", fmt::format("GPU {}: {}: ended after {} s of it", gpu, cause,
                                        format_double(std::round(total * 1e3) / 1e3)));
      on = false;
      total = 0;
    }
  }
};

Channel limit_channel(const GpuFacts& gpu, std::string column, std::string note) {
  Channel channel = gpu_channel(gpu, std::move(column), Quantity::power, "W");
  channel.in_total = false;
  channel.note = std::move(note);
  return channel;
}

Query throttle_and_limits(const GpuFacts& gpu, const Driver::Access& access) {
  std::vector<FieldColumn> columns;
  for (const auto& field : kThrottleFields) {
    Channel channel = gpu_channel(gpu, field.column, Quantity::duration, "s", Behaviour::counter);
    channel.note = fmt::format("field {}", static_cast<unsigned>(field.field));
    columns.push_back({field.field, kScopeGpu, 1e9, kNoLimit, std::move(channel)});
  }
  columns.push_back({kFieldPowerLimit, kScopeGpu, 1000, gpu.power_limit_w,
                     limit_channel(gpu, "power_limit_w", "field 190: enforced, a limit and not a reading")});
  columns.push_back({kFieldPowerLimitRequested, kScopeGpu, 1000, gpu.power_limit_w,
                     limit_channel(gpu, "power_limit_requested_w", "field 192: requested, a limit and not a reading")});
  columns.push_back({kFieldMemoryTemperature, kScopeGpu, 1, 200,
                     gpu_channel(gpu, "memory_temperature_celsius", Quantity::temperature, "Cel")});
  Query query = field_query("", std::move(columns), access);
  std::vector<Throttle> throttles;
  for (std::size_t i = 0; i < query.channels.size(); ++i)
    for (const auto& field : kThrottleFields)
      if (field.cause && query.channels[i].column == field.column)
        throttles.push_back({i, field.cause, {}, 0, 0, false});
  if (throttles.empty()) return query;
  query.ask = [fields = std::move(query.ask), throttles = std::move(throttles), index = gpu.info.index](
                  const Driver::Access& a, Cells& cells, std::size_t first, Readings& out) mutable {
    const Return code = fields(a, cells, first, out);
    if (code == Return::success)
      for (auto& throttle : throttles) throttle.observe(cells[first + throttle.column], index, out);
    return code;
  };
  return query;
}

Query enforced_limit(const GpuFacts& gpu, const Api& api) {
  return {"",
          {limit_channel(gpu, "power_limit_w", "nvmlDeviceGetEnforcedPowerLimit, a limit and not a reading")},
          [ask = api.enforced_limit, limit = gpu.power_limit_w](const Driver::Access& a, Cells& cells,
                                                                std::size_t first, Readings&) {
            unsigned mw = 0;
            const Return code = ask(a.device, &mw);
            if (code == Return::success) cells.put(first, std::uint64_t{mw}, mw / 1000.0, limit);
            return code;
          }};
}

Query clock_event_reasons(const GpuFacts& gpu, const Api& api) {
  Channel channel = gpu_channel(gpu, "clock_event_reasons", Quantity::count, "");
  channel.note =
      "bit mask: 1 idle, 2 clock setting, 4 power cap, 8 hardware slowdown, 16 sync boost, 32 software "
      "thermal, 64 hardware thermal, 128 power brake, 256 display";
  return {"",
          {std::move(channel)},
          [ask = api.clock_event_reasons](const Driver::Access& a, Cells& cells, std::size_t first, Readings&) {
            std::uint64_t mask = 0;
            const Return code = ask(a.device, &mask);
            if (code == Return::success) cells.put(first, mask, static_cast<double>(mask), kNoLimit);
            return code;
          }};
}

// --- Processes ----------------------------------------------------------------------------------------------------

// Calls `ask` with room for what it wants to tell: the list can grow between two calls, so a few times.
template <class Record, class Ask>
Return fill_list(std::vector<Record>& list, unsigned& count, const Ask& ask) {
  Return code = Return::insufficient_size;
  count = 0;
  for (int attempt = 0; attempt < 4 && code == Return::insufficient_size; ++attempt) {
    if (count >= list.size()) list.resize(std::min<std::size_t>(count + 64, 1 << 16));
    count = static_cast<unsigned>(list.size());
    code = ask(list.data(), &count);
  }
  count = std::min(count, static_cast<unsigned>(list.size()));
  return code;
}

Query processes(const GpuFacts& gpu, const Api& api) {
  const auto count_channel = [&](const char* column, const char* note) {
    Channel channel = gpu_channel(gpu, column, Quantity::count, "");
    channel.note = note;
    return channel;
  };
  const auto bytes_channel = [&](const char* column, const char* note) {
    Channel channel = gpu_channel(gpu, column, Quantity::bytes, "B");
    channel.note = note;
    return channel;
  };
  return {"process list",
          {count_channel("process_count", "compute processes"),
           bytes_channel("process_memory_bytes",
                         "sum over compute processes; missing if the driver does not tell it for one of them"),
           count_channel("tree_process_count", "of the measured command"),
           count_channel("foreign_process_count", "of others"),
           count_channel("unattributed_process_count", "whose owner cannot be told here"),
           bytes_channel("unattributed_memory_bytes", "of processes whose owner cannot be told here")},
          [ask = api.compute_processes, view = gpu.processes, list = std::vector<ProcessInfo>(64)](
              const Driver::Access& a, Cells& cells, std::size_t first, Readings&) mutable {
            unsigned count = 0;
            const Return code =
                fill_list(list, count, [&](ProcessInfo* out, unsigned* n) { return ask(a.device, n, out); });
            if (code != Return::success) return code;
            std::array<unsigned, 3> owners{};
            std::optional<std::uint64_t> all = 0, unattributed = 0;
            const auto add = [](std::optional<std::uint64_t>& sum, std::uint64_t bytes) {
              // One unknown part makes the sum unknown.
              sum = sum && !is_blank(bytes) ? std::optional(*sum + bytes) : std::nullopt;
            };
            for (unsigned i = 0; i < count; ++i) {
              const Owner owner = owner_of(view, static_cast<int>(list[i].pid));
              ++owners[static_cast<std::size_t>(owner)];
              add(all, list[i].used_memory);
              if (owner == Owner::unknown) add(unattributed, list[i].used_memory);
            }
            cells.put(first, count, kNoLimit);
            if (all) cells.put(first + 1, static_cast<double>(*all), kNoLimit);
            for (std::size_t i = 0; i < owners.size(); ++i) cells.put(first + 2 + i, owners[i], kNoLimit);
            if (unattributed) cells.put(first + 5, static_cast<double>(*unattributed), kNoLimit);
            return code;
          }};
}

// What a process does, by owner: all, the command's, others'. What is in neither of the last two is unattributed.
Query process_utilisation(const GpuFacts& gpu, const Api& api) {
  static constexpr std::array<std::pair<const char*, const char*>, 6> columns{{
      {"process_active_ratio", "share of time in which kernels of any compute process ran, summed over processes"},
      {"tree_active_ratio", "of processes of the measured command"},
      {"foreign_active_ratio", "of processes of others"},
      {"process_memory_active_ratio", "share of time in which memory was read or written, summed over processes"},
      {"tree_memory_active_ratio", "of processes of the measured command"},
      {"foreign_memory_active_ratio", "of processes of others"},
  }};
  Query query;
  query.what = "process utilisation";
  for (const auto& [column, note] : columns) {
    Channel channel = gpu_channel(gpu, column, Quantity::ratio, "1");
    channel.note = note;
    query.channels.push_back(std::move(channel));
  }
  query.ask = [ask = api.process_utilization, view = gpu.processes, since = std::uint64_t{0},
               list = std::vector<ProcessUtilization>(128)](const Driver::Access& a, Cells& cells, std::size_t first,
                                                            Readings&) mutable {
    unsigned count = 0;
    const Return code =
        fill_list(list, count, [&](ProcessUtilization* out, unsigned* n) { return ask(a.device, out, n, since); });
    if (code != Return::success) return code;
    std::map<unsigned, ProcessUtilization> newest;
    for (unsigned i = 0; i < count; ++i) {
      since = std::max(since, list[i].timestamp_us);
      auto& seen = newest[list[i].pid];
      if (list[i].timestamp_us >= seen.timestamp_us) seen = list[i];
    }
    if (newest.empty()) return code;
    double sm[3] = {}, memory[3] = {};
    for (const auto& [pid, sample] : newest) {
      if (sample.sm > 100 || sample.memory > 100) {
        const auto worst = std::max(sample.sm, sample.memory);
        for (std::size_t i = 0; i < columns.size(); ++i)
          cells.reject(first + i, fmt::format("{} % for one process", worst));
        return code;
      }
      const auto owner = static_cast<std::size_t>(owner_of(view, static_cast<int>(pid)));
      sm[owner] += sample.sm / 100.0;
      memory[owner] += sample.memory / 100.0;
    }
    constexpr auto tree = static_cast<std::size_t>(Owner::tree), foreign = static_cast<std::size_t>(Owner::foreign);
    const auto put = [&](std::size_t at, const double(&by_owner)[3]) {
      cells.put(first + at, by_owner[0] + by_owner[1] + by_owner[2], kNoLimit);
      cells.put(first + at + 1, by_owner[tree], kNoLimit);
      cells.put(first + at + 2, by_owner[foreign], kNoLimit);
    };
    put(0, sm);
    put(3, memory);
    return code;
  };
  return query;
}

Query mig_mode(const GpuFacts& gpu, const Api& api) {
  Channel channel = gpu_channel(gpu, "mig_mode", Quantity::count, "");
  channel.note = "1: the GPU is cut into MIG slices";
  return {"",
          {std::move(channel)},
          [ask = api.mig_mode](const Driver::Access& a, Cells& cells, std::size_t first, Readings&) {
            unsigned current = 0, pending = 0;
            const Return code = ask(a.device, &current, &pending);
            if (code == Return::success) cells.put(first, current, 1);
            return code;
          }};
}

// --- GPM ----------------------------------------------------------------------------------------------------------

struct GpmColumn {
  GpmId id;
  const char* column;
  const char* note;
};
constexpr GpmColumn kGpmColumns[] = {
    {kGpmGraphics, "graphics_active_ratio", "share of time in which the compute or graphics engine was busy"},
    {kGpmSmActive, "sm_active_ratio", "share of time with a warp resident, mean over multiprocessors"},
    {kGpmSmOccupancy, "sm_occupancy_ratio", "warps resident of those possible, mean over multiprocessors"},
    {kGpmTensor, "tensor_active_ratio", "share of cycles in which tensor cores worked"},
    {kGpmDram, "dram_active_ratio", "memory traffic of the theoretical maximum"},
    {kGpmPcieTx, "pcie_sent_bytes_per_s", "from the GPU"},
    {kGpmPcieRx, "pcie_received_bytes_per_s", "to the GPU"},
    {kGpmNvlinkRx, "nvlink_received_bytes_per_s", "all links"},
    {kGpmNvlinkTx, "nvlink_sent_bytes_per_s", "all links"},
};
constexpr double kMebi = 1024 * 1024;

bool is_traffic(GpmId id) { return id >= kGpmPcieTx; }

// Two samples, of which the older is the start of the next interval.
class GpmWindow {
 public:
  // `instance`: the GPU instance of a MIG slice; unset: the whole GPU.
  GpmWindow(std::shared_ptr<Driver> driver, std::vector<GpmColumn> columns, std::optional<unsigned> instance)
      : driver_(std::move(driver)), columns_(std::move(columns)), instance_(instance) {}
  ~GpmWindow() { release(); }
  GpmWindow(const GpmWindow&) = delete;
  GpmWindow& operator=(const GpmWindow&) = delete;

  Return read(const Driver::Access& a, Cells& cells, std::size_t first) {
    if (a.generation != generation_) {
      // The samples died with the library's last life.
      older_ = newer_ = nullptr;
      primed_ = false;
      generation_ = a.generation;
    }
    // Two samples that lie too close give zeros and no numbers.
    const MonoTime now = driver_->clock().now();
    if (primed_ && now - older_time_ < std::chrono::milliseconds(100)) return Return::no_data;
    for (GpmSample* sample : {&older_, &newer_})
      if (!*sample)
        if (const Return code = a.api->gpm_alloc(sample); code != Return::success) return code;
    const Return taken =
        instance_ ? a.api->gpm_mig_sample(a.device, *instance_, newer_) : a.api->gpm_sample(a.device, newer_);
    if (taken != Return::success) {
      primed_ = false;
      return taken;
    }
    const Return code = primed_ ? metrics(*a.api, cells, first) : Return::success;
    std::swap(older_, newer_);
    older_time_ = now;
    primed_ = true;
    return code;
  }

 private:
  Return metrics(const Api& api, Cells& cells, std::size_t first) {
    std::fill(buffer_.begin(), buffer_.end(), 0);
    auto* request = reinterpret_cast<GpmRequest*>(buffer_.data());
    auto* metrics = reinterpret_cast<GpmMetric*>(request + 1);
    *request = {1, static_cast<std::uint32_t>(columns_.size()), older_, newer_};
    for (std::size_t i = 0; i < columns_.size(); ++i) metrics[i].id = columns_[i].id;
    if (const Return code = api.gpm_metrics(request); code != Return::success) return code;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (metrics[i].status != Return::success) continue;
      // The driver divides two counters and may end a hair above 100 %.
      if (is_traffic(columns_[i].id))
        cells.put(first + i, metrics[i].value * kMebi, 1e14);
      else
        cells.put(first + i, metrics[i].value / 100.0, 1.01);
    }
    return Return::success;
  }

  void release() {
    const Api& api = driver_->api();
    if (!api.gpm_free || !driver_->is_running(generation_)) return;
    for (GpmSample sample : {older_, newer_})
      if (sample) api.gpm_free(sample);
  }

  std::shared_ptr<Driver> driver_;
  std::vector<GpmColumn> columns_;
  std::optional<unsigned> instance_;
  GpmSample older_ = nullptr, newer_ = nullptr;
  bool primed_ = false;
  MonoTime older_time_;
  unsigned generation_ = 0;
  // Room for far more metrics than any release knows, since the library may clear its whole array.
  std::vector<std::uint64_t> buffer_ = std::vector<std::uint64_t>(8192);
};

Query gpm(const GpuFacts& gpu, std::shared_ptr<Driver> driver) {
  Query query;
  query.what = "GPM activity metrics";
  for (const auto& metric : kGpmColumns) {
    Channel channel = is_traffic(metric.id) ? gpu_channel(gpu, metric.column, Quantity::bytes, "B/s")
                                            : gpu_channel(gpu, metric.column, Quantity::ratio, "1");
    channel.note = metric.note;
    query.channels.push_back(std::move(channel));
  }
  query.ask = [window = std::make_shared<GpmWindow>(
                   std::move(driver), std::vector<GpmColumn>(std::begin(kGpmColumns), std::end(kGpmColumns)),
                   std::nullopt)](const Driver::Access& a, Cells& cells, std::size_t first, Readings&) {
    return window->read(a, cells, first);
  };
  return query;
}

// What one GPU instance of a GPU that is cut into slices does, of its own part.
Query slice_activity(const GpuFacts& gpu, std::shared_ptr<Driver> driver, unsigned instance) {
  const std::vector<GpmColumn> columns{
      {kGpmSmActive, "sm_active_ratio", "share of time with a warp resident, mean over the slice's multiprocessors"},
      {kGpmDram, "dram_active_ratio", "memory traffic of the slice's maximum"}};
  Query query;
  query.what = fmt::format("activity of MIG instance {}", instance);
  for (const auto& metric : columns) {
    Channel channel = gpu_channel(gpu, fmt::format("mig{}_{}", instance, metric.column), Quantity::ratio, "1");
    channel.note = metric.note;
    query.channels.push_back(std::move(channel));
  }
  query.ask = [window = std::make_shared<GpmWindow>(std::move(driver), columns, instance)](
                  const Driver::Access& a, Cells& cells, std::size_t first, Readings&) {
    return window->read(a, cells, first);
  };
  return query;
}

bool supports_gpm(const Driver::Access& access) {
  const Api& api = *access.api;
  if (!api.gpm_support || !api.gpm_alloc || !api.gpm_free || !api.gpm_sample || !api.gpm_metrics) return false;
  GpmSupport support{1, 0};
  return api.gpm_support(access.device, &support) == Return::success && support.supported != 0;
}

}  // namespace

std::vector<Query> slow_queries(const GpuFacts& gpu, const Driver::Access& access) {
  const Api& api = *access.api;
  std::vector<Query> queries;
  Query fields = throttle_and_limits(gpu, access);
  const bool limit_known = has_column(fields, "power_limit_w");
  if (!fields.channels.empty()) queries.push_back(std::move(fields));
  if (!limit_known && api.enforced_limit) queries.push_back(enforced_limit(gpu, api));
  if (api.clock_event_reasons) queries.push_back(clock_event_reasons(gpu, api));
  if (api.compute_processes) queries.push_back(processes(gpu, api));
  if (api.process_utilization) queries.push_back(process_utilisation(gpu, api));
  if (api.mig_mode) queries.push_back(mig_mode(gpu, api));
  return queries;
}

std::vector<Query> activity_queries(const GpuFacts& gpu, std::shared_ptr<Driver> driver, const Driver::Access& access) {
  std::vector<Query> queries;
  if (!supports_gpm(access)) return queries;
  queries.push_back(gpm(gpu, driver));
  if (!access.api->gpm_mig_sample) return queries;
  std::set<int> instances;
  for (const auto& slice : gpu.info.slices) instances.insert(slice.gpu_instance);
  for (const int instance : instances) queries.push_back(slice_activity(gpu, driver, static_cast<unsigned>(instance)));
  return queries;
}

}  // namespace ergometer::nvml
