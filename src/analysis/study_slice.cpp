#include "analysis/study_slice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

Error no_such(const std::string& what, std::string_view name, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  Error error{ErrorCode::invalid_argument, fmt::format("the study has no {} \"{}\"", what, name), ""};
  if (!nearest.empty())
    error.hint = fmt::format("did you mean \"{}\"?", nearest);
  else if (known.empty())
    error.hint = "it has none";
  else
    error.hint = fmt::format("it has {}", fmt::join(known.begin(), known.begin() + std::min<std::ptrdiff_t>(
                                                                       20, static_cast<std::ptrdiff_t>(known.size())),
                                                    ", "));
  return error;
}

}  // namespace

std::optional<std::size_t> factor_index(const StudyTable& table, std::string_view name) {
  for (std::size_t i = 0; i < table.factors.size(); ++i)
    if (table.factors[i].name == name) return i;
  return std::nullopt;
}

Result<std::vector<std::size_t>> cells_at(const StudyTable& table, const LevelsByFactor& fixed) {
  std::vector<std::pair<std::size_t, std::size_t>> wanted;
  for (const auto& [name, level] : fixed) {
    const auto factor = factor_index(table, name);
    if (!factor) {
      std::vector<std::string> names;
      for (const auto& f : table.factors) names.push_back(f.name);
      return tl::unexpected(no_such("factor", name, names));
    }
    const auto& levels = table.factors[*factor].levels;
    const auto it = std::find(levels.begin(), levels.end(), level);
    if (it == levels.end()) return tl::unexpected(no_such("level of " + name, level, levels));
    wanted.emplace_back(*factor, static_cast<std::size_t>(it - levels.begin()));
  }
  std::vector<std::size_t> out;
  for (std::size_t cell = 0; cell < table.cells.size(); ++cell) {
    const auto& levels = table.cells[cell].levels;
    if (std::all_of(wanted.begin(), wanted.end(), [&](const auto& w) { return levels[w.first] == w.second; }))
      out.push_back(cell);
  }
  return out;
}

StudyTable table_at(StudyTable table, const std::vector<std::size_t>& cells) {
  std::map<std::size_t, std::size_t> number;
  std::vector<StudyCell> kept;
  for (const auto cell : cells) {
    number[cell] = kept.size();
    kept.push_back(table.cells[cell]);
  }
  std::erase_if(table.runs, [&](const StudyRun& run) { return !number.contains(run.cell); });
  for (auto& run : table.runs) run.cell = number[run.cell];
  table.cells = std::move(kept);
  return table;
}

Result<const StudyMetric*> metric_of(const StudyTable& table, std::string_view name) {
  std::vector<std::string> names;
  for (const auto& metric : table.metrics) {
    if (metric.name == name) return &metric;
    names.push_back(metric.name);
  }
  return tl::unexpected(no_such("metric", name, names));
}

std::vector<double> values_in(const StudyTable& table, std::size_t cell, const std::string& metric) {
  std::vector<double> out;
  for (const auto& run : table.runs) {
    if (run.cell != cell || run.verdict != Verdict::valid) continue;
    if (const auto it = run.metrics.find(metric); it != run.metrics.end()) out.push_back(it->second.value);
  }
  return out;
}

std::optional<Centre> centre_in(const StudyTable& table, std::size_t cell, const std::string& metric) {
  std::vector<double> values;
  std::optional<double> uncertainty;
  for (const auto& run : table.runs) {
    if (run.cell != cell || run.verdict != Verdict::valid) continue;
    const auto it = run.metrics.find(metric);
    if (it == run.metrics.end()) continue;
    values.push_back(it->second.value);
    uncertainty = it->second.uncertainty;
  }
  auto out = mean_with_t(values);
  if (out && values.size() == 1 && uncertainty)
    out->interval = Bounds{out->value - *uncertainty, out->value + *uncertainty};
  return out;
}

std::vector<std::size_t> varying_factors(const StudyTable& table, const std::vector<std::size_t>& cells) {
  std::vector<std::size_t> out;
  for (std::size_t f = 0; f < table.factors.size(); ++f) {
    const auto differs = [&](std::size_t c) { return table.cells[c].levels[f] != table.cells[cells[0]].levels[f]; };
    if (std::any_of(cells.begin(), cells.end(), differs)) out.push_back(f);
  }
  return out;
}

std::string cell_name(const StudyTable& table, std::size_t cell, const std::vector<std::size_t>& factors) {
  std::string out;
  for (const std::size_t f : factors) {
    const auto& factor = table.factors[f];
    const std::string& level = factor.levels[table.cells[cell].levels[f]];
    if (!out.empty()) out += ", ";
    // A bare number has to say what it is of.
    if (!parse_double(level))
      out += level;
    else
      out += factor.unit.empty() ? factor.name + " " + level : level + " " + factor.unit;
  }
  return out.empty() ? fmt::format("cell {}", cell) : out;
}

}  // namespace ergometer
