#include "study/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/number.hpp"
#include "study/cell_command.hpp"
#include "study/metrics.hpp"

namespace ergometer {
namespace {

struct Times {
  double sum = 0;
  std::size_t count = 0;
};

double cool_down_s(const StudyFile& file) { return seconds(file.runs.cool_down.time); }

std::vector<StudyFactor> factors_of(const StudyFile& file, const Plan& plan) {
  std::vector<StudyFactor> factors;
  for (std::size_t f = 0; f < file.factors.size(); ++f) {
    const auto& from = file.factors[f];
    StudyFactor factor{from.name, from.unit, from.levels, {}};
    if (f < plan.level_values.size())
      factor.values = plan.level_values[f];
    else
      for (const auto& level : from.levels) factor.values.push_back(level_number(from, level));
    // A share of something that no machine told stays a share.
    const auto is_share = [](const std::string& level) { return level.ends_with('%'); };
    if (std::ranges::all_of(from.levels, is_share) && std::ranges::none_of(factor.values, [](const auto& v) { return v.has_value(); })) {
      factor.unit = "%";
      for (std::size_t l = 0; l < from.levels.size(); ++l)
        factor.values[l] = parse_double(std::string_view(from.levels[l]).substr(0, from.levels[l].size() - 1));
    }
    factors.push_back(std::move(factor));
  }
  return factors;
}

// A command that never worked is worth a word at the top of every report.
void add_warnings(StudyTable& table) {
  std::map<std::size_t, std::pair<int, int>> by_cell;  // failed, others
  for (const auto& run : table.runs) {
    if (run.verdict == Verdict::missing) continue;
    auto& [failed, others] = by_cell[run.cell];
    ++(run.verdict == Verdict::failed ? failed : others);
  }
  std::size_t broken = 0;
  for (const auto& [cell, counts] : by_cell) broken += counts.first > 0 && counts.second == 0;
  if (broken > 0)
    table.warnings.push_back({"cells-failed", fmt::format("{} of {} cells failed in every run", broken, table.cells.size()),
                              "look at the output beside their run: runs/NNNN.log"});
  const auto invalid = std::ranges::count(table.runs, Verdict::invalid, &StudyRun::verdict);
  if (invalid > 0)
    table.warnings.push_back({"runs-invalid", fmt::format("{} runs are invalid and in no mean", invalid),
                              "see their reasons: ergometer study status STUDY"});
}

// Levels that were asked for apart and came to the same, as where a limit from outside is below both.
void add_equal_levels(const StudyState& state, StudyTable& table) {
  std::map<std::pair<std::string, std::string>, std::set<std::string>> asked;  // by control and effective value
  for (const auto& run : state.runs)
    if (run.end)
      for (const auto& seen : run.end->controls) asked[{seen.name, seen.effective}].insert(seen.requested);
  for (const auto& [key, requested] : asked)
    if (requested.size() > 1)
      table.warnings.push_back({"levels-equal",
                                fmt::format("{}: {} were asked for, and the device went by {} in each", key.first,
                                            fmt::join(requested, " and "), key.second),
                                "their runs are the same setting: leave one out, or find what holds the device there"});
}

}  // namespace

StudyProgress progress_of(const StudyFile& file, const Plan& plan, const StudyState& state) {
  StudyProgress progress;
  std::map<std::size_t, Times> by_cell;
  Times all;
  std::optional<double> measured, modelled;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    const auto& run = state.runs[i];
    if (run.skipped) continue;
    ++progress.planned;
    if (run.end) {
      progress.valid += run.end->verdict == Verdict::valid;
      progress.invalid += run.end->verdict == Verdict::invalid;
      progress.failed += run.end->verdict == Verdict::failed;
      progress.spent_s += run.end->seconds;
      for (auto* times : {&by_cell[plan.runs[i].cell], &all}) {
        times->sum += run.end->seconds;
        ++times->count;
      }
      if (run.end->energy_j) measured = measured.value_or(0) + *run.end->energy_j;
      if (const auto found = run.end->metrics.find("modelled_energy_j"); found != run.end->metrics.end())
        modelled = modelled.value_or(0) + found->second.value;
    } else {
      ++progress.left;
      progress.running += run.process.has_value();
      progress.submitted += !run.process && !run.job.empty();
    }
  }
  progress.energy_j = measured ? measured : modelled;
  progress.energy_modelled = !measured && modelled;
  if (all.count == 0) return progress;
  double left = 0;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    if (state.runs[i].skipped || state.runs[i].end) continue;
    const auto cell = by_cell.find(plan.runs[i].cell);
    const auto& times = cell != by_cell.end() ? cell->second : all;
    left += times.sum / static_cast<double>(times.count) + cool_down_s(file);
  }
  progress.left_s = left;
  return progress;
}

StudyTable table_of(const StudyFile& file, const Plan& plan, const StudyState& state) {
  StudyTable table;
  table.name = file.name;
  table.description = file.description;
  table.factors = factors_of(file, plan);
  table.cells = plan.cells;
  std::set<std::string> present;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    const auto& from = state.runs[i];
    if (from.skipped) continue;
    StudyRun run;
    run.cell = plan.runs[i].cell;
    run.repetition = run.block = plan.runs[i].repetition;
    if (from.end) {
      run.order = from.order;
      run.folder = from.folder;
      run.verdict = from.end->verdict;
      run.reasons = from.end->reasons;
      run.metrics = from.end->metrics;
      for (const auto& [name, value] : run.metrics) present.insert(name);
    }
    table.runs.push_back(std::move(run));
  }
  for (const auto& metric : study_metrics())
    if (present.contains(metric.name)) table.metrics.push_back(metric);
  add_warnings(table);
  add_equal_levels(state, table);
  return table;
}

}  // namespace ergometer
