#include "study_questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "analysis/study_slice.hpp"

namespace ergometer::cli {
namespace {

constexpr std::array kWorkFactors{"workload", "mode",    "phase",        "model", "network",
                                  "task",     "dataset", "data",         "gpu",   "architecture"};
constexpr std::array kCounts{"gpus", "ranks", "nodes"};
constexpr double kSameEpoch = 0.01;  // epochs whose numbers of samples differ by less are alike

std::size_t cells_with(const StudyTable& table, std::initializer_list<std::string> metrics) {
  std::set<std::size_t> cells;
  for (const auto& run : table.runs)
    if (run.verdict == Verdict::valid &&
        std::ranges::all_of(metrics, [&](const std::string& m) { return run.metrics.contains(m); }))
      cells.insert(run.cell);
  return cells.size();
}

// What `cell` has in common with its group: its levels of the factors that `keep` accepts and that vary at all.
template <class Keep>
std::string group_name(const StudyTable& table, std::size_t cell, Keep keep) {
  std::string out;
  for (std::size_t f = 0; f < table.factors.size(); ++f) {
    const auto& factor = table.factors[f];
    if (factor.levels.size() < 2 || !keep(f)) continue;
    if (!out.empty()) out += ", ";
    const auto index = table.cells[cell].levels[f];
    const bool named = index >= factor.values.size() || !factor.values[index];
    out += named ? factor.levels[index] : fmt::format("{} {}", factor.name, factor.levels[index]);
  }
  return out;
}

template <class Keep>
std::map<std::string, Cells> groups_of(const StudyTable& table, Keep keep) {
  std::map<std::string, Cells> out;
  for (std::size_t cell = 0; cell < table.cells.size(); ++cell) out[group_name(table, cell, keep)].push_back(cell);
  return out;
}

// Whether the epochs of the same work had the same number of samples at every setting.
bool have_same_epochs(const StudyTable& table) {
  for (const auto& [work, cells] : cells_by_work(table)) {
    std::optional<double> least, most;
    for (const auto cell : cells) {
      const auto rate = centre_in(table, cell, "samples_per_s"), time = centre_in(table, cell, "seconds_per_epoch");
      if (!rate || !time) continue;
      const double samples = rate->value * time->value;
      least = std::min(least.value_or(samples), samples);
      most = std::max(most.value_or(samples), samples);
    }
    if (least && *most > *least * (1 + kSameEpoch)) return false;
  }
  return true;
}

// The first metrics of the right units.
MetricPair metrics_by_unit(const StudyTable& table) {
  MetricPair out;
  for (const auto& m : table.metrics) {
    if (!m.lower_is_better || cells_with(table, {m.name}) == 0) continue;
    if (out.time.empty() && (m.unit == "s" || m.unit.starts_with("s/"))) out.time = m.name;
    const bool energy =
        m.unit == "J" || m.unit == "kJ" || m.unit == "Wh" || m.unit == "kWh" || m.unit.starts_with("J/");
    if (out.energy.empty() && energy) out.energy = m.name;
  }
  return out;
}

std::optional<double> value_at(const StudyTable& table, std::size_t cell, std::size_t factor) {
  const auto& values = table.factors[factor].values;
  const auto level = table.cells[cell].levels[factor];
  return level < values.size() ? values[level] : std::nullopt;
}

std::optional<double> metric_in(const StudyRun& run, const char* name) {
  const auto found = run.metrics.find(name);
  return found == run.metrics.end() ? std::nullopt : std::optional(found->second.value);
}

}  // namespace

MetricPair comparison_metrics(const StudyTable& table) {
  const std::size_t all = cells_with(table, {});
  const MetricPair epoch{"seconds_per_epoch", "energy_per_epoch_j"}, sample{"seconds_per_sample", "energy_per_sample_j"},
      run{"duration_s", "energy_j"}, modelled_epoch{"seconds_per_epoch", "modelled_energy_per_epoch_j"},
      modelled_sample{"seconds_per_sample", "modelled_energy_per_sample_j"}, modelled_run{"duration_s", "modelled_energy_j"};
  std::vector<MetricPair> pairs{epoch, sample, run, modelled_epoch, modelled_sample, modelled_run};
  // Joules of an epoch say nothing about settings whose epochs are not the same work.
  if (!have_same_epochs(table)) pairs = {sample, epoch, run, modelled_sample, modelled_epoch, modelled_run};
  // Nearly all cells before most of them: training and inference are compared by what both have.
  for (const double share : {0.9, 0.5})
    for (const auto& pair : pairs)
      if (const auto cells = cells_with(table, {pair.time, pair.energy});
          cells > 0 && static_cast<double>(cells) >= share * static_cast<double>(all))
        return pair;
  return metrics_by_unit(table);
}

bool is_work_factor(const StudyFactor& factor) {
  return std::ranges::find(kWorkFactors, factor.name) != kWorkFactors.end();
}

bool is_numeric(const StudyFactor& factor) {
  return factor.levels.size() >= 2 && factor.values.size() == factor.levels.size() &&
         std::ranges::all_of(factor.values, [](const auto& value) { return value && *value > 0; });
}

std::map<std::string, Cells> cells_by_work(const StudyTable& table) {
  return groups_of(table, [&](std::size_t f) { return is_work_factor(table.factors[f]); });
}

std::map<std::string, Cells> cells_along(const StudyTable& table, std::size_t factor) {
  return groups_of(table, [factor](std::size_t other) { return other != factor; });
}

std::optional<std::string> limit_factor(const StudyTable& table) {
  for (const std::string name : {"power_limit", "graphics_clock", "clock"})
    for (const auto& f : table.factors)
      if (f.name == name && f.levels.size() > 1) return name;
  return std::nullopt;
}

std::vector<StudyLaw> scaling_laws(const StudyTable& table, const MetricPair& metrics) {
  std::vector<StudyLaw> out;
  for (std::size_t f = 0; f < table.factors.size(); ++f) {
    if (!is_numeric(table.factors[f])) continue;
    for (const auto& [name, cells] : cells_along(table, f)) {
      if (cells.size() < 3) continue;  // a law through two points says nothing
      for (const auto& metric : {metrics.time, metrics.energy}) {
        if (metric.empty()) continue;
        const auto points = points_of(table, table.factors[f].name, metric, cells);
        if (!points) continue;
        if (auto law = fit_power_law(*points)) out.push_back({table.factors[f].name, metric, name, cells, *law});
      }
    }
  }
  return out;
}

std::vector<StudyScaling> scaling_tables(const StudyTable& table, const MetricPair& metrics) {
  std::vector<StudyScaling> out;
  if (metrics.time.empty()) return out;
  for (const char* count : kCounts) {
    const auto f = factor_index(table, count);
    if (!f || !is_numeric(table.factors[*f])) continue;
    for (const auto& [name, cells] : cells_along(table, *f)) {
      const auto time = points_of(table, count, metrics.time, cells);
      if (!time) continue;
      const auto energy = points_of(table, count, metrics.energy, cells);
      auto rows = scaling_rows(*time, energy ? *energy : std::vector<Point>{});
      if (rows.size() > 1) out.push_back({count, name, std::move(rows)});
    }
  }
  return out;
}

std::vector<StudyRate> energy_rates(const StudyTable& table) {
  const auto gpus = factor_index(table, "gpus");
  std::vector<StudyRate> out;
  // A class of nodes with idle GPUs has a rate of its own.
  const auto keep = [&](std::size_t f) { return is_work_factor(table.factors[f]) || table.factors[f].name == "node_class"; };
  for (const auto& [work, cells] : groups_of(table, keep)) {
    std::vector<Point> points;
    for (const auto& run : table.runs) {
      const auto time = metric_in(run, "duration_s"), energy = metric_in(run, "gpu_energy_j");
      if (run.verdict != Verdict::valid || !time || !energy || std::ranges::find(cells, run.cell) == cells.end()) continue;
      // Without the factor a run has the GPUs that it was given.
      const auto count = gpus ? value_at(table, run.cell, *gpus) : metric_in(run, "gpu_count");
      if (count && *count > 0 && *time > 0 && *energy > 0) points.push_back({*count * *time / 3600, *energy});
    }
    if (const auto rate = energy_rate(points)) out.push_back({work, *rate});
  }
  return out;
}

std::optional<P2Names> p2_names(const StudyTable& table) {
  P2Names names;
  const auto node_class = factor_index(table, names.node_class);
  if (!node_class || table.factors[*node_class].levels.size() < 2) return std::nullopt;
  if (!factor_index(table, names.phase) && factor_index(table, "mode")) names.phase = "mode";
  if (const auto phase = factor_index(table, names.phase))
    for (const auto& level : table.factors[*phase].levels)
      if (level.starts_with("infer")) names.inference = level;
  if (cells_with(table, {names.energy_j}) == 0 && cells_with(table, {"modelled_energy_j"}) > 0) {
    names.energy_j = "modelled_energy_j";
    names.energy_per_sample_j = "modelled_energy_per_sample_j";
  }
  return names;
}

}  // namespace ergometer::cli
