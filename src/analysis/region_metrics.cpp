#include "analysis/region_metrics.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "base/number.hpp"

namespace ergometer {
namespace {

// Work attribute and the metric of energy for one of it.
constexpr std::array<std::pair<std::string_view, const char*>, 3> kWork{
    {{"samples", "energy_per_sample_j"}, {"tokens", "energy_per_token_j"}, {"molecules", "energy_per_molecule_j"}}};

struct Mean {
  double sum = 0;
  std::size_t count = 0;
};

}  // namespace

bool is_work(std::string_view key) {
  for (const auto& [work, metric] : kWork)
    if (key == work) return true;
  return false;
}

void add_work_metrics(RegionEnergy& out) {
  if (!out.energy_j) return;
  for (const auto& [work, metric] : kWork) {
    const auto amount = out.metrics.find(std::string(work));
    if (amount == out.metrics.end() || amount->second <= 0) continue;
    const double work_done = amount->second;
    out.metrics[metric] = *out.energy_j / work_done;
    if (out.uncertainty_j) out.metrics[std::string(metric) + "_uncertainty"] = *out.uncertainty_j / work_done;
  }
}

RegionEnergy describe(const Rows& rows, std::uint32_t line, MonoTime run_begin) {
  const RegionRow& row = rows.lines[line];
  const Region& first = rows.regions[row.members.front()];
  RegionEnergy out;
  out.path = row.path;
  out.name = first.name();
  out.count = static_cast<std::int64_t>(row.members.size());
  if (out.count == 1) out.index = first.index();
  out.t_begin_s = seconds(first.begin - run_begin);
  out.rank = first.rank;
  Nanos length{0};
  for (const auto m : row.members) {
    const Region& region = rows.regions[m];
    length += region.duration();
    out.cut |= region.cut;
    if (region.rank != out.rank) out.rank = -1;
  }
  out.duration_s = seconds(length);
  return out;
}

void add_metrics(const Rows& rows, std::uint32_t line, const std::vector<Gauge>& gauges, RegionEnergy& out) {
  for (const auto& gauge : gauges)
    if (const auto& value = gauge.values[kFirstRegionRow + line]; value && std::isfinite(*value))
      out.metrics[gauge.key] = *value;
  std::map<std::string, Mean> attributes;
  for (const auto m : rows.lines[line].members)
    for (const auto& [key, text] : rows.regions[m].attributes)
      if (const auto value = parse_double(text)) {
        auto& mean = attributes[key];
        mean.sum += *value;
        ++mean.count;
      }
  for (const auto& [key, mean] : attributes)
    out.metrics[key] = is_work(key) ? mean.sum : mean.sum / static_cast<double>(mean.count);
  add_work_metrics(out);
}

}  // namespace ergometer
