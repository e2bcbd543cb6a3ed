// Logs with a row a GPU and time. What nvidia-smi's columns mean is in `nvidia-smi --help-query-gpu`; the Supercloud form
// has the same columns under other names, in Unix seconds.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/number.hpp"
#include "base/text.hpp"
#include "store/import/readers.hpp"

namespace ergometer::foreign {
namespace {

constexpr double kBackLow_s = 3000, kBackHigh_s = 4200;  // a clock set back by an hour, but for the readings between

// A column that becomes a channel.
struct GpuColumn {
  std::string_view name;  // as column_name makes it
  const char* column;     // ours
  Quantity quantity;
  const char* unit;       // ours
  UnitKind kind;
  const char* usual_unit;  // of the log's numbers where it says none
  Behaviour behaviour;
  std::optional<Method> method;
};

constexpr auto kGauge = Behaviour::gauge;
const std::array kGpuColumns{
    GpuColumn{"power_draw", "power_w", Quantity::power, "W", UnitKind::power, "W", kGauge, Method::integral},
    GpuColumn{"power", "power_w", Quantity::power, "W", UnitKind::power, "W", kGauge, Method::integral},
    GpuColumn{"power_usage", "power_w", Quantity::power, "W", UnitKind::power, "W", kGauge, Method::integral},
    GpuColumn{"power_draw_instant", "power_instant_w", Quantity::power, "W", UnitKind::power, "W", kGauge,
              Method::integral},
    GpuColumn{"power_draw_average", "power_average_w", Quantity::power, "W", UnitKind::power, "W", kGauge,
              Method::average},
    GpuColumn{"total_energy_consumption", "energy_j", Quantity::energy, "J", UnitKind::energy, "mJ",
              Behaviour::counter, Method::counter},
    GpuColumn{"utilization_gpu", "gpu_active_ratio", Quantity::ratio, "1", UnitKind::ratio, "%", kGauge, {}},
    GpuColumn{"utilization_memory", "memory_active_ratio", Quantity::ratio, "1", UnitKind::ratio, "%", kGauge, {}},
    GpuColumn{"memory_used", "memory_used_bytes", Quantity::bytes, "B", UnitKind::bytes, "MiB", kGauge, {}},
    GpuColumn{"memory_free", "memory_free_bytes", Quantity::bytes, "B", UnitKind::bytes, "MiB", kGauge, {}},
    GpuColumn{"memory_total", "memory_total_bytes", Quantity::bytes, "B", UnitKind::bytes, "MiB", kGauge, {}},
    GpuColumn{"temperature_gpu", "temperature_c", Quantity::temperature, "Cel", UnitKind::temperature, "C", kGauge, {}},
    GpuColumn{"temperature_memory", "memory_temperature_c", Quantity::temperature, "Cel", UnitKind::temperature, "C",
              kGauge, {}},
    GpuColumn{"clocks_sm", "sm_clock_hz", Quantity::frequency, "Hz", UnitKind::frequency, "MHz", kGauge, {}},
    GpuColumn{"clocks_current_sm", "sm_clock_hz", Quantity::frequency, "Hz", UnitKind::frequency, "MHz", kGauge, {}},
    GpuColumn{"clocks_mem", "memory_clock_hz", Quantity::frequency, "Hz", UnitKind::frequency, "MHz", kGauge, {}},
    GpuColumn{"clocks_current_memory", "memory_clock_hz", Quantity::frequency, "Hz", UnitKind::frequency, "MHz", kGauge,
              {}},
    GpuColumn{"pcie_link_width_current", "pcie_link_width", Quantity::count, "", UnitKind::plain, "", kGauge, {}},
};

enum class Role { time, index, uuid, device_name, bus, limit };
struct RoleName {
  std::string_view name;
  Role role;
};
constexpr std::array kRoles{
    RoleName{"timestamp", Role::time},   RoleName{"time", Role::time},         RoleName{"datetime", Role::time},
    RoleName{"date", Role::time},        RoleName{"t", Role::time},            RoleName{"t_s", Role::time},
    RoleName{"index", Role::index},      RoleName{"gpu_index", Role::index},   RoleName{"gpu", Role::index},
    RoleName{"gpu_id", Role::index},     RoleName{"uuid", Role::uuid},         RoleName{"gpu_uuid", Role::uuid},
    RoleName{"name", Role::device_name}, RoleName{"gpu_name", Role::device_name},
    RoleName{"pci_bus_id", Role::bus},   RoleName{"gpu_bus_id", Role::bus},    RoleName{"power_limit", Role::limit},
    RoleName{"enforced_power_limit", Role::limit}};

// Where in a row each thing stands.
struct Layout {
  std::map<Role, std::size_t> roles;
  std::map<Role, std::string> units;
  struct Used {
    std::size_t at;
    const GpuColumn* column;
    std::string unit;
  };
  std::vector<Used> used;
  std::vector<std::string> unknown;
};

Layout layout_of(const std::vector<std::string>& header) {
  Layout out;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const auto [name, unit] = column_name(header[i]);
    const auto role = std::find_if(kRoles.begin(), kRoles.end(), [&](const RoleName& r) { return r.name == name; });
    if (role != kRoles.end()) {
      if (out.roles.emplace(role->role, i).second) out.units[role->role] = unit;
      continue;
    }
    const auto column =
        std::find_if(kGpuColumns.begin(), kGpuColumns.end(), [&](const GpuColumn& c) { return c.name == name; });
    const bool again = column != kGpuColumns.end() && std::any_of(out.used.begin(), out.used.end(), [&](const auto& u) {
                         return std::string_view(u.column->column) == column->column;
                       });
    if (column == kGpuColumns.end() || again)
      out.unknown.push_back(header[i]);
    else
      out.used.push_back({i, &*column, unit.empty() ? column->usual_unit : unit});
  }
  return out;
}

// Day or month first, from all rows; an error if no row tells.
Result<DateOrder> order_of_dates(ForeignCsv& csv, std::size_t at, const std::string& source, DateOrder wished) {
  if (wished != DateOrder::unknown) return wished;
  std::vector<std::string_view> fields;
  std::string ambiguous;
  DateOrder told = DateOrder::unknown;
  while (told == DateOrder::unknown && csv.next(fields)) {
    told = order_told_by(fields[at]);
    const auto time = parse_foreign_time(fields[at], DateOrder::day_first);
    if (!time) continue;
    const auto other = parse_foreign_time(fields[at], DateOrder::month_first);
    if (other && other->unix_ns != time->unix_ns && ambiguous.empty()) ambiguous = std::string(fields[at]);
    // One row with the year first, or with a number, stands for all.
    if (ambiguous.empty() && !time->same_day_and_month) break;
  }
  csv.rewind();
  if (told != DateOrder::unknown || ambiguous.empty()) return told;
  return fail(ErrorCode::invalid_argument,
              fmt::format("{}: \"{}\" may be day or month first, and no row tells which", source, ambiguous),
              "say it: --dates dmy or --dates mdy");
}

class GpuLogReader {
 public:
  GpuLogReader(ForeignCsv& csv, const std::string& source) : csv_(csv), source_(source), layout_(layout_of(csv.header())) {}

  Result<std::vector<ImportedLog>> read(const ImportOptions& options) {
    const auto order = order_of_dates(csv_, layout_.roles.at(Role::time), source_, options.dates);
    if (!order) return tl::unexpected(order.error());
    std::vector<std::string_view> fields;
    while (csv_.next(fields)) add(fields, *order);
    if (gpus_.empty())
      return fail(ErrorCode::corrupt, fmt::format("{} has no row with a time and a reading", source_),
                  bad_rows_ ? fmt::format("the first row that cannot be read is line {}", first_bad_) : "");
    if (!told_apart_ && same_time_ * 10 > rows_)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{} has several rows a time and no column that tells GPUs apart", source_),
                  "record it with index or uuid: nvidia-smi --query-gpu=timestamp,index,power.draw --format=csv -lms 100");
    return std::vector<ImportedLog>{finish()};
  }

 private:
  struct Gpu {
    GpuInfo info;
    Trace trace;
  };

  std::string field(const std::vector<std::string_view>& fields, Role role) const {
    const auto it = layout_.roles.find(role);
    return it == layout_.roles.end() ? "" : std::string(fields[it->second]);
  }

  // Header lines again (a log that was started anew) and rows without a time are left out.
  void add(const std::vector<std::string_view>& fields, DateOrder order) {
    const std::size_t at = layout_.roles.at(Role::time);
    if (fields[at] == csv_.header()[at]) return;
    const auto time = parse_foreign_time(fields[at], order);
    if (!time) {
      if (bad_rows_++ == 0) first_bad_ = csv_.line();
      return;
    }
    relative_ = relative_ || time->relative;
    zone_ = zone_ || time->zone;
    ++rows_;
    const std::int64_t t_ns = on_one_clock(*time);
    Gpu& gpu = gpu_of(fields);
    if (!gpu.trace.t_ns.empty() && gpu.trace.t_ns.back() == t_ns) ++same_time_;
    Row row{mono_ns(t_ns), Nanos{0}, {}};
    for (const auto& used : layout_.used) {
      const auto number = foreign_number(fields[used.at], used.unit, used.column->kind, csv_.decimal_comma());
      if (!number.readable && bad_values_++ == 0)
        first_bad_value_ = fmt::format("line {}, \"{}\" in {}", csv_.line(), fields[used.at].substr(0, 40),
                                       csv_.header()[used.at]);
      row.values.push_back(number.value);
    }
    gpu.trace.push(row);
  }

  // A wall clock without a zone goes back by an hour in autumn: what follows is an hour later than it says.
  std::int64_t on_one_clock(const ForeignTime& time) {
    std::int64_t t = time.unix_ns + shift_ns_;
    const double back_s = static_cast<double>(last_ns_ - t) / 1e9;
    if (rows_ > 1 && !time.zone && back_s > kBackLow_s && back_s < kBackHigh_s) {
      shift_ns_ += 3'600'000'000'000;
      t += 3'600'000'000'000;
    }
    last_ns_ = t;
    return t;
  }

  Gpu& gpu_of(const std::vector<std::string_view>& fields) {
    std::string key = field(fields, Role::uuid);
    for (const Role role : {Role::bus, Role::index})
      if (key.empty()) key = field(fields, role);
    told_apart_ = told_apart_ || !key.empty();
    const auto known = by_key_.find(key);
    if (known != by_key_.end()) return gpus_[known->second];
    Gpu gpu;
    const auto index = parse_int(field(fields, Role::index));
    const bool usable = index && *index >= 0 && *index < 100000 && !indices_.contains(static_cast<int>(*index));
    gpu.info.index = usable ? static_cast<int>(*index) : 0;
    while (!usable && indices_.contains(gpu.info.index)) ++gpu.info.index;
    indices_.insert(gpu.info.index);
    gpu.info.uuid = field(fields, Role::uuid);
    gpu.info.name = field(fields, Role::device_name);
    gpu.info.pci_bus_id = field(fields, Role::bus);
    if (const auto it = layout_.roles.find(Role::limit); it != layout_.roles.end()) {
      const auto& unit = layout_.units.at(Role::limit);
      gpu.info.power_limit_w =
          foreign_number(fields[it->second], unit.empty() ? "W" : unit, UnitKind::power, csv_.decimal_comma()).value;
    }
    gpu.trace = Trace::empty(sensor_of(gpu.info));
    by_key_[key] = gpus_.size();
    return gpus_.emplace_back(std::move(gpu));
  }

  SensorInfo sensor_of(const GpuInfo& gpu) const {
    SensorInfo out;
    out.name = fmt::format("gpu{}", gpu.index);
    out.interface = "import";
    out.note = fmt::format("imported from {}", source_);
    for (const auto& used : layout_.used) {
      Channel c;
      c.column = used.column->column;
      c.quantity = used.column->quantity;
      c.unit = used.column->unit;
      c.behaviour = used.column->behaviour;
      c.domain = fmt::format("gpu/{}", gpu.index);
      c.device = gpu.uuid.empty() ? gpu.name : gpu.uuid;
      c.scope = Scope::gpu;
      c.method = used.column->method;
      c.note = "column " + csv_.header()[used.at];
      out.channels.push_back(std::move(c));
    }
    return out;
  }

  ImportedLog finish() {
    ImportedLog out;
    const auto& header = csv_.header();
    const bool smi = std::any_of(header.begin(), header.end(),
                                 [](const auto& h) { return h.find("power.draw") != std::string::npos; });
    const bool cloud = std::find(header.begin(), header.end(), "utilization_gpu_pct") != header.end();
    out.format = smi ? "nvidia-smi CSV" : cloud ? "Supercloud GPU CSV" : "table of time and power";
    out.node.name = "imported";
    out.relative = relative_;
    std::size_t unordered = 0;
    for (auto& gpu : gpus_) {
      unordered += put_in_order(gpu.trace);
      out.node.gpus.push_back(gpu.info);
      out.node.sensors.push_back(gpu.trace.info);
      out.traces.push_back(std::move(gpu.trace));
    }
    warn_of_left_out(out.warnings, source_, bad_rows_, first_bad_, "their time cannot be read");
    warn_of_left_out(out.warnings, source_, csv_.left_out(), csv_.first_left_out(), "they have another number of fields");
    if (bad_values_ > 0)
      out.warnings.push_back({"import-values", fmt::format("{}: {} values are neither numbers nor a word for missing; they "
                                                           "are missing here (first: {})",
                                                           source_, bad_values_, first_bad_value_),
                              ""});
    if (unordered > 0)
      out.warnings.push_back({"import-order", fmt::format("{}: rows out of order or twice were sorted", source_), ""});
    if (shift_ns_ != 0)
      out.warnings.push_back({"import-clock", fmt::format("{}: the wall clock went back by an hour; later rows were moved",
                                                          source_),
                              "record Unix times or times with a zone"});
    if (!zone_ && !relative_)
      out.warnings.push_back({"import-zone", fmt::format("{} says no time zone; its times are taken as UTC", source_), ""});
    if (!layout_.unknown.empty())
      out.warnings.push_back({"import-columns", fmt::format("{}: columns left out: {}", source_,
                                                            fmt::join(layout_.unknown, ", ")),
                              ""});
    if (std::none_of(layout_.used.begin(), layout_.used.end(), [](const auto& u) { return u.column->method.has_value(); }))
      out.warnings.push_back({"import-no-power", fmt::format("{} has no column of power or energy", source_),
                              "record power.draw as well"});
    return out;
  }

  ForeignCsv& csv_;
  std::string source_;
  Layout layout_;
  std::vector<Gpu> gpus_;
  std::map<std::string, std::size_t> by_key_;
  std::set<int> indices_;
  std::size_t rows_ = 0, same_time_ = 0, bad_rows_ = 0, first_bad_ = 0, bad_values_ = 0;
  std::string first_bad_value_;
  std::int64_t last_ns_ = 0, shift_ns_ = 0;
  bool told_apart_ = false, relative_ = false, zone_ = false;
};

}  // namespace

bool is_gpu_log(const std::vector<std::string>& header) {
  const auto layout = layout_of(header);
  return layout.roles.contains(Role::time) && !layout.used.empty();
}

Result<std::vector<ImportedLog>> read_gpu_log(ForeignCsv& csv, const std::string& source, const ImportOptions& options) {
  return GpuLogReader(csv, source).read(options);
}

}  // namespace ergometer::foreign
