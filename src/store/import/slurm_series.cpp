// Slurm's profile as CSV, as `sh5util -E` writes it and the Supercloud data set publishes it. Units are those of
// Slurm's acct_gather_profile documentation: CPUFrequency in kHz, CPUUtilization in percent of one CPU, RSS and VMSize in
// KiB, ReadMB and WriteMB in MB since the reading before, Power in W.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/text.hpp"
#include "store/import/readers.hpp"

namespace ergometer::foreign {
namespace {

constexpr std::array kSeriesColumns{
    SeriesColumn{"Power", "power_w", Quantity::power, "W", 1},
    SeriesColumn{"CPUFrequency", "cpu_frequency_hz", Quantity::frequency, "Hz", 1e3},
    SeriesColumn{"CPUUtilization", "cpu_ratio", Quantity::ratio, "1", 0.01},
    SeriesColumn{"RSS", "rss_bytes", Quantity::bytes, "B", 1024},
    SeriesColumn{"VMSize", "virtual_bytes", Quantity::bytes, "B", 1024},
    SeriesColumn{"ReadMB", "read_interval_bytes", Quantity::bytes, "B", 1e6},
    SeriesColumn{"WriteMB", "written_interval_bytes", Quantity::bytes, "B", 1e6}};

std::optional<std::size_t> place_of(const std::vector<std::string>& header, std::string_view name) {
  for (std::size_t i = 0; i < header.size(); ++i)
    if (lower(header[i]) == lower(name)) return i;
  return std::nullopt;
}

struct SeriesPlaces {
  std::optional<std::size_t> step, node, series, epoch, elapsed;
  std::vector<std::pair<std::size_t, const SeriesColumn*>> used;
};

SeriesPlaces places_of(const std::vector<std::string>& header) {
  SeriesPlaces out{place_of(header, "Step"), place_of(header, "Node"), place_of(header, "Series"),
                   place_of(header, "EpochTime"), place_of(header, "ElapsedTime"), {}};
  for (const auto& column : kSeriesColumns)
    if (const auto at = place_of(header, column.name)) out.used.emplace_back(*at, &column);
  return out;
}

SensorInfo series_sensor(const std::string& name, const std::string& source, const SeriesPlaces& places) {
  SensorInfo out;
  out.name = name;
  out.interface = "import";
  out.note = fmt::format("imported from {}", source);
  for (const auto& [at, used] : places.used) out.channels.push_back(series_channel(*used));
  return out;
}

}  // namespace

std::span<const SeriesColumn> series_columns() { return kSeriesColumns; }

Channel series_channel(const SeriesColumn& column) {
  Channel out;
  out.column = column.column;
  out.quantity = column.quantity;
  out.unit = column.unit;
  // What Slurm's energy plugin reads is the whole node; the rest is of the step's processes.
  const bool node = column.quantity == Quantity::power;
  out.domain = node ? "node" : "tree";
  out.scope = node ? Scope::node : Scope::tree;
  if (node) out.method = Method::integral;
  out.note = fmt::format("column {}", column.name);
  return out;
}

bool is_slurm_series(const std::vector<std::string>& header) {
  const auto places = places_of(header);
  return (places.epoch || places.elapsed) && places.series && !places.used.empty();
}

Result<std::vector<ImportedLog>> read_slurm_series(ForeignCsv& csv, const std::string& source) {
  const auto places = places_of(csv.header());
  const bool epoch = places.epoch.has_value();
  const std::size_t time_at = epoch ? *places.epoch : *places.elapsed;
  std::map<std::string, std::map<std::string, Trace>> nodes;  // node -> series -> readings
  std::size_t bad = 0, first_bad = 0;
  std::vector<std::string_view> fields;
  while (csv.next(fields)) {
    const auto time = parse_foreign_time(fields[time_at], DateOrder::unknown);
    if (!time) {
      if (bad++ == 0) first_bad = csv.line();
      continue;
    }
    const std::string node = places.node && !fields[*places.node].empty() ? std::string(fields[*places.node]) : "imported";
    std::string series = lower(std::string(fields[*places.series]));
    if (places.step) series = fmt::format("step{}-{}", fields[*places.step], series);
    auto [it, added] = nodes[node].try_emplace(series);
    if (added) it->second = Trace::empty(series_sensor(file_name_of(series), source, places));
    Row row{mono_ns(time->unix_ns), Nanos{0}, {}};
    for (const auto& [at, used] : places.used) {
      auto value = foreign_number(fields[at], "", UnitKind::plain, csv.decimal_comma()).value;
      if (value) *value *= used->factor;
      row.values.push_back(value);
    }
    it->second.push(row);
  }
  if (nodes.empty())
    return fail(ErrorCode::corrupt, fmt::format("{} has no row with a time", source),
                bad ? fmt::format("the first row that cannot be read is line {}", first_bad) : "");
  std::vector<ImportedLog> out;
  for (auto& [name, series] : nodes) {
    ImportedLog log;
    log.format = "Slurm task profile CSV";
    log.node.name = name;
    log.relative = !epoch;
    for (auto& [key, trace] : series) {
      put_in_order(trace);
      log.node.sensors.push_back(trace.info);
      log.traces.push_back(std::move(trace));
    }
    out.push_back(std::move(log));
  }
  warn_of_left_out(out.front().warnings, source, bad, first_bad, "their time cannot be read");
  warn_of_left_out(out.front().warnings, source, csv.left_out(), csv.first_left_out(),
                   "they have another number of fields");
  return out;
}

}  // namespace ergometer::foreign
