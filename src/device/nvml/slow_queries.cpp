// The queries of the sensors gpuN-slow (throttling, limits, processes, MIG mode) and gpuN-activity (GPM metrics).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

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

Query processes(const GpuFacts& gpu, const Api& api) {
  Channel memory = gpu_channel(gpu, "process_memory_bytes", Quantity::bytes, "B");
  memory.note = "sum over compute processes; missing if the driver does not tell it for one of them";
  return {"process list",
          {gpu_channel(gpu, "process_count", Quantity::count, ""), std::move(memory)},
          [ask = api.compute_processes, list = std::vector<ProcessInfo>(64)](const Driver::Access& a, Cells& cells,
                                                                             std::size_t first, Readings&) mutable {
            unsigned count = 0;
            Return code = Return::insufficient_size;
            // The list can grow between two calls: ask again a few times with the room that was asked for.
            for (int attempt = 0; attempt < 4 && code == Return::insufficient_size; ++attempt) {
              if (count >= list.size()) list.resize(std::min<std::size_t>(count + 64, 1 << 16));
              count = static_cast<unsigned>(list.size());
              code = ask(a.device, &count, list.data());
            }
            if (code != Return::success) return code;
            count = std::min(count, static_cast<unsigned>(list.size()));
            cells.put(first, count, kNoLimit);
            std::uint64_t bytes = 0;
            for (unsigned i = 0; i < count; ++i) {
              if (is_blank(list[i].used_memory)) return code;  // one unknown part makes the sum unknown
              bytes += list[i].used_memory;
            }
            cells.put(first + 1, static_cast<double>(bytes), kNoLimit);
            return code;
          }};
}

Query process_utilisation(const GpuFacts& gpu, const Api& api) {
  Channel channel = gpu_channel(gpu, "process_active_ratio", Quantity::ratio, "1");
  channel.note = "share of time in which kernels of any compute process ran, summed over processes";
  return {"process utilisation",
          {std::move(channel)},
          [ask = api.process_utilization, since = std::uint64_t{0}, list = std::vector<ProcessUtilization>(128)](
              const Driver::Access& a, Cells& cells, std::size_t first, Readings&) mutable {
            unsigned count = 0;
            Return code = Return::insufficient_size;
            for (int attempt = 0; attempt < 4 && code == Return::insufficient_size; ++attempt) {
              if (count >= list.size()) list.resize(std::min<std::size_t>(count + 64, 1 << 16));
              count = static_cast<unsigned>(list.size());
              code = ask(a.device, list.data(), &count, since);
            }
            if (code != Return::success) return code;
            std::map<unsigned, ProcessUtilization> newest;
            for (unsigned i = 0; i < std::min(count, static_cast<unsigned>(list.size())); ++i) {
              since = std::max(since, list[i].timestamp_us);
              auto& seen = newest[list[i].pid];
              if (list[i].timestamp_us >= seen.timestamp_us) seen = list[i];
            }
            double sum = 0;
            for (const auto& [pid, sample] : newest) {
              if (sample.sm > 100) {
                cells.reject(first, fmt::format("{} % for one process", sample.sm));
                return code;
              }
              sum += sample.sm;
            }
            if (!newest.empty()) cells.put(first, sum / 100.0, kNoLimit);
            return code;
          }};
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
  explicit GpmWindow(std::shared_ptr<Driver> driver) : driver_(std::move(driver)) {}
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
    if (const Return code = a.api->gpm_sample(a.device, newer_); code != Return::success) {
      primed_ = false;
      return code;
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
    *request = {1, static_cast<std::uint32_t>(std::size(kGpmColumns)), older_, newer_};
    for (std::size_t i = 0; i < std::size(kGpmColumns); ++i) metrics[i].id = kGpmColumns[i].id;
    if (const Return code = api.gpm_metrics(request); code != Return::success) return code;
    for (std::size_t i = 0; i < std::size(kGpmColumns); ++i) {
      if (metrics[i].status != Return::success) continue;
      // The driver divides two counters and may end a hair above 100 %.
      if (is_traffic(kGpmColumns[i].id))
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
  query.ask = [window = std::make_shared<GpmWindow>(std::move(driver))](const Driver::Access& a, Cells& cells,
                                                                        std::size_t first, Readings&) {
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
  if (supports_gpm(access)) queries.push_back(gpm(gpu, std::move(driver)));
  return queries;
}

}  // namespace ergometer::nvml
