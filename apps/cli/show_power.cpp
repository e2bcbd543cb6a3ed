#include "show_power.hpp"

#include <algorithm>

#include "analysis/power_bins.hpp"
#include "report/nodes_table.hpp"
#include "store/run_reader.hpp"

namespace ergometer::cli {
namespace {

// The column from which the summary took the domain's energy.
std::optional<std::size_t> column_of(const SensorInfo& sensor, const DomainEnergy& d) {
  for (std::size_t i = 0; i < sensor.channels.size(); ++i) {
    const Channel& c = sensor.channels[i];
    if (c.domain == d.domain && c.scope == d.scope && c.method == d.method && c.in_total && c.measured) return i;
  }
  return std::nullopt;
}

}  // namespace

std::vector<PowerLine> power_lines(const std::filesystem::path& dir, const LoadedRun& run, std::size_t parts) {
  std::vector<PowerLine> out;
  // Pictures of many nodes would be read by nobody, and their samples once more by us.
  if (!run.manifest.begin || !run.manifest.end || !few_nodes(run.summary)) return out;
  const auto reader = RunReader::open(dir);
  if (!reader) return out;
  for (const auto& node : run.summary.nodes) {
    const auto info = std::find_if(run.nodes.begin(), run.nodes.end(), [&](const Node& n) { return n.name == node.name; });
    if (info == run.nodes.end()) continue;
    for (const auto& d : node.domains) {
      if (!d.in_total || !d.measured || !d.energy_j) continue;
      for (const auto& name : reader->sensors(node.name)) {
        // node.json says which file holds the domain, so that only that one is read; files that it does not describe
        // have to be opened.
        const auto known = std::find_if(info->sensors.begin(), info->sensors.end(),
                                        [&](const SensorInfo& s) { return s.name == name; });
        if (known != info->sensors.end() && !column_of(*known, d)) continue;
        std::vector<Warning> damage;  // told by the summary already
        const auto trace = reader->samples(node.name, name, &damage);
        if (!trace) continue;
        const auto column = column_of(trace->info, d);
        if (!column) continue;
        out.push_back({run.summary.nodes.size() > 1 ? node.name + " " + d.domain : d.domain,
                       power_bins(*trace, *column, to_ns(*run.manifest.begin), to_ns(*run.manifest.end), parts)});
        break;
      }
    }
  }
  return out;
}

}  // namespace ergometer::cli
