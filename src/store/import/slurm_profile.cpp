// Slurm's profile of a job in HDF5 (acct_gather_profile/hdf5): the file of a whole job, as `sh5util` merges it
// (Steps/STEP/Nodes/NODE/SERIES), or of one step on one node (NODE/SERIES in JOB_STEP_NODE.h5). A series is a table with
// EpochTime; tasks lie below Tasks/NUMBER.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.hpp"
#include "store/import/hdf5_library.hpp"
#include "store/import/readers.hpp"

namespace ergometer::foreign {
namespace {

// Where a table belongs.
struct SeriesPlace {
  std::string node, series;  // "n1", "step0-task-1"
};

std::string step_in_name(const std::string& file) {
  const auto parts = split(file, '_');
  return parts.size() >= 3 ? std::string(parts[1]) : "";
}

SeriesPlace place_of_table(const std::vector<std::string>& path, const std::string& file) {
  SeriesPlace out;
  std::string step;
  std::size_t at = 0;
  if (path.size() > 4 && path[0] == "Steps" && path[2] == "Nodes") {
    step = path[1];
    out.node = path[3];
    at = 4;
  } else if (path.size() > 1) {
    step = step_in_name(file);
    out.node = path[0];
    at = 1;
  }
  if (!step.empty()) out.series = "step" + step;
  for (std::size_t i = at; i < path.size(); ++i) {
    const std::string name = path[i] == "Tasks" ? "task" : lower(path[i]);
    out.series += (out.series.empty() ? "" : "-") + name;
  }
  if (out.node.empty()) out.node = "imported";
  return out;
}

std::optional<std::size_t> column_at(const Hdf5Table& table, std::string_view name) {
  const auto found = std::ranges::find(table.columns, name);
  if (found == table.columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - table.columns.begin());
}

// Unset for a table that is no series of ours.
std::optional<Trace> trace_of_table(const Hdf5Table& table, const std::string& series, const std::string& source) {
  const auto time = column_at(table, "EpochTime");
  std::vector<std::pair<std::size_t, const SeriesColumn*>> used;
  for (const auto& column : series_columns())
    if (const auto at = column_at(table, column.name)) used.emplace_back(*at, &column);
  if (!time || used.empty()) return std::nullopt;
  SensorInfo sensor;
  sensor.name = file_name_of(series);
  sensor.interface = "import";
  sensor.note = fmt::format("imported from {}", source);
  for (const auto& [at, column] : used) sensor.channels.push_back(series_channel(*column));
  Trace out = Trace::empty(std::move(sensor));
  for (std::size_t row = 0; row < table.values[*time].size(); ++row) {
    Row to{mono_ns(std::llround(table.values[*time][row] * 1e9)), Nanos{0}, {}};
    for (const auto& [at, column] : used) {
      const double value = table.values[at][row];
      to.values.push_back(std::isfinite(value) ? std::optional(value * column->factor) : std::nullopt);
    }
    out.push(to);
  }
  put_in_order(out);
  return out;
}

}  // namespace

Result<std::vector<ImportedLog>> read_slurm_profile(const std::filesystem::path& file) {
  const auto source = file.filename().string();
  const auto tables = read_hdf5_tables(file);
  if (!tables) return tl::unexpected(tables.error());
  std::map<std::string, ImportedLog> nodes;
  for (const auto& table : *tables) {
    const auto place = place_of_table(table.path, source);
    auto trace = trace_of_table(table, place.series, source);
    if (!trace || trace->rows() == 0) continue;
    auto& log = nodes[place.node];
    log.format = "Slurm profile HDF5";
    log.node.name = place.node;
    log.node.sensors.push_back(trace->info);
    log.traces.push_back(std::move(*trace));
  }
  if (nodes.empty())
    return fail(ErrorCode::unsupported, fmt::format("{} is HDF5 without a series of Slurm's profile plugin", source),
                "a job has one if it was submitted with --profile=energy,task");
  std::vector<ImportedLog> out;
  for (auto& [name, log] : nodes) out.push_back(std::move(log));
  return out;
}

}  // namespace ergometer::foreign
