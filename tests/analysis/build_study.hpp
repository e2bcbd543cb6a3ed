// Small studies for the tests of statistics, effects, decisions and tables.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "model/study_table.hpp"

namespace ergometer::test {

// A factor whose levels are numbers.
inline StudyFactor number_factor(const std::string& name, const std::string& unit, const std::vector<double>& values) {
  StudyFactor f{name, unit, {}, {}};
  for (const double v : values) {
    f.levels.push_back(std::to_string(static_cast<int>(v)) + unit);
    f.values.emplace_back(v);
  }
  return f;
}

inline StudyFactor name_factor(const std::string& name, const std::vector<std::string>& levels) {
  return {name, "", levels, std::vector<std::optional<double>>(levels.size())};
}

// All combinations of the factors, the last one fastest, without runs.
inline StudyTable full_design(std::vector<StudyFactor> factors) {
  StudyTable t;
  t.factors = std::move(factors);
  t.metrics = {{"time_s", "time", "s", true}, {"energy_j", "energy", "J", true}};
  std::size_t count = 1;
  for (const auto& f : t.factors) count *= f.levels.size();
  for (std::size_t i = 0; i < count; ++i) {
    StudyCell cell{std::vector<std::size_t>(t.factors.size())};
    std::size_t rest = i;
    for (std::size_t f = t.factors.size(); f-- > 0;) {
      cell.levels[f] = rest % t.factors[f].levels.size();
      rest /= t.factors[f].levels.size();
    }
    t.cells.push_back(cell);
  }
  return t;
}

inline StudyRun& add_run(StudyTable& t, std::size_t cell, double time_s, double energy_j, int block = 0) {
  StudyRun run;
  run.cell = cell;
  run.block = block;
  run.verdict = Verdict::valid;
  run.metrics = {{"time_s", {time_s, {}}}, {"energy_j", {energy_j, {}}}};
  t.runs.push_back(run);
  return t.runs.back();
}

}  // namespace ergometer::test
