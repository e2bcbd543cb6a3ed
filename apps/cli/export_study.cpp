#include "export_study.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "analysis/study_slice.hpp"
#include "base/csv.hpp"
#include "base/number.hpp"
#include "report/latex.hpp"
#include "store/study_table_json.hpp"

namespace ergometer::cli {
namespace {

std::vector<std::size_t> all_cells(const StudyTable& table) {
  std::vector<std::size_t> out(table.cells.size());
  std::iota(out.begin(), out.end(), 0U);
  return out;
}

std::string study_csv(const StudyTable& table) {
  std::vector<std::string> header;
  for (const auto& f : table.factors) header.push_back(f.name);
  for (const char* name : {"repetition", "block", "order", "folder", "verdict"}) header.emplace_back(name);
  for (const auto& m : table.metrics) {
    header.push_back(m.name);
    header.push_back(m.name + "_uncertainty");
  }
  std::string out = csv_line(header);
  for (const auto& run : table.runs) {
    std::vector<std::string> row;
    for (std::size_t f = 0; f < table.factors.size(); ++f)
      row.push_back(table.factors[f].levels[table.cells[run.cell].levels[f]]);
    row.push_back(fmt::format("{}", run.repetition));
    row.push_back(fmt::format("{}", run.block));
    row.push_back(run.order ? fmt::format("{}", *run.order) : "");
    row.push_back(run.folder);
    row.emplace_back(to_word(run.verdict));
    for (const auto& m : table.metrics) {
      const auto it = run.metrics.find(m.name);
      const bool known = it != run.metrics.end();
      row.push_back(known ? format_double(it->second.value) : "");
      row.push_back(known && it->second.uncertainty ? format_double(*it->second.uncertainty) : "");
    }
    out += csv_line(row);
  }
  return out;
}

std::optional<double> half_width(const Centre& c) {
  if (!c.interval) return std::nullopt;
  return 0.5 * (c.interval->high - c.interval->low);
}

std::string study_latex(const StudyTable& table) {
  LatexTable out;
  out.caption = fmt::format("{}. Means over valid runs; $\\pm$ is the half-width of a 95\\,\\% interval.",
                            latex_text(table.name.empty() ? "Study" : table.name));
  out.label = "tab:ergometer-study";
  const auto varying = table.cells.empty() ? std::vector<std::size_t>{} : varying_factors(table, all_cells(table));
  out.header = {"Cell", "Runs"};
  for (const auto& m : table.metrics)
    out.header.push_back(latex_text(m.title + (m.unit.empty() ? "" : " (" + m.unit + ")")));
  for (std::size_t cell = 0; cell < table.cells.size(); ++cell) {
    std::size_t runs = 0;
    for (const auto& run : table.runs) runs += run.cell == cell && run.verdict == ergometer::Verdict::valid;
    std::vector<std::string> row{latex_text(cell_name(table, cell, varying)), fmt::format("{}", runs)};
    for (const auto& m : table.metrics) {
      const auto centre = centre_in(table, cell, m.name);
      row.push_back(centre ? latex_number(centre->value, half_width(*centre)) : latex_number(std::nullopt, std::nullopt));
    }
    out.rows.push_back(std::move(row));
  }
  return latex_table(out);
}

std::string study_benchmark(const StudyTable& table) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  const auto varying = table.cells.empty() ? std::vector<std::size_t>{} : varying_factors(table, all_cells(table));
  for (std::size_t cell = 0; cell < table.cells.size(); ++cell) {
    for (const auto& m : table.metrics) {
      const auto centre = centre_in(table, cell, m.name);
      if (!centre || !m.lower_is_better) continue;
      nlohmann::ordered_json entry{{"name", cell_name(table, cell, varying) + ": " + m.title},
                                   {"unit", m.unit},
                                   {"value", centre->value}};
      if (const auto half = half_width(*centre)) entry["range"] = "\xC2\xB1 " + format_double(*half);
      entry["extra"] = fmt::format("{} run{}", centre->count, centre->count == 1 ? "" : "s");
      out.push_back(std::move(entry));
    }
  }
  return out.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<std::string> export_study(const StudyTable& table, const std::string& format) {
  if (format == "csv") return study_csv(table);
  if (format == "json") return study_table_to_json(table);
  if (format == "latex") return study_latex(table);
  if (format == "github-benchmark") return study_benchmark(table);
  return fail(ErrorCode::unsupported, fmt::format("a study cannot be exported as {}", format),
              "it can as csv, json, latex or github-benchmark; the others are of single runs");
}

}  // namespace ergometer::cli
