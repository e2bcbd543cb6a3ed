// A comparison as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "comparison.hpp"
#include "report/sparkline.hpp"
#include "report/table.hpp"
#include "report/units.hpp"

namespace ergometer::cli {
namespace {

constexpr std::size_t kBarWidth = 20;

using ComparisonJson = nlohmann::ordered_json;

ComparisonJson known(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? ComparisonJson(*value) : ComparisonJson(nullptr);
}

ComparisonJson bounds(const std::optional<Bounds>& b) {
  return b ? ComparisonJson{{"low", known(b->low)}, {"high", known(b->high)}} : ComparisonJson(nullptr);
}

// Against the first run: "-12.3 %".
std::string change_cell(const RunComparison& c, std::size_t run, const char* quantity) {
  for (const auto& q : c.quantities)
    if (q.run == run && q.quantity == quantity) return fmt::format("{:+.1f} %", 100 * q.difference);
  return run == 0 ? "" : kMissing;
}

ComparisonJson comparison_value(const RunComparison& c) {
  ComparisonJson out{{"schema", "ergometer.comparison/1"}, {"runs", ComparisonJson::array()},
                     {"comparisons", ComparisonJson::array()}, {"caveats", c.caveats}};
  for (const auto& run : c.runs)
    out["runs"].push_back({{"path", run.path},
                           {"name", run.name},
                           {"duration_s", known(run.duration_s)},
                           {"energy_j", known(run.energy_j)},
                           {"uncertainty_j", known(run.uncertainty_j)},
                           {"mean_power_w", known(run.mean_power_w)},
                           {"energy_per_sample_j", known(run.energy_per_sample_j)},
                           {"domains_j", run.domains_j},
                           {"partial", run.partial},
                           {"valid", run.valid}});
  for (const auto& q : c.quantities) {
    ComparisonJson regions = nullptr;
    if (q.regions)
      regions = {{"family", q.family},
                 {"pairs", q.regions->pairs},
                 {"difference", known(q.regions->difference)},
                 {"interval", bounds(q.regions->interval)},
                 {"distinguishable", q.regions->distinguishable()}};
    out["comparisons"].push_back({{"run", q.run},
                                  {"against", 0},
                                  {"quantity", q.quantity},
                                  {"difference", known(q.difference)},
                                  {"interval", bounds(q.interval)},
                                  {"regions", std::move(regions)},
                                  {"verdict", q.verdict}});
  }
  return out;
}

}  // namespace

std::string comparison_text(const RunComparison& c, std::size_t width) {
  Table table;
  table.columns = {{"Run", false, 0},      {"Time", true, 0},   {"", true, 1},           {"Energy", true, 0},
                   {"\xC2\xB1", true, 2},  {"", true, 0},       {"Mean", true, 2},       {"per sample", true, 3},
                   {"", true, 3},          {"", false, 4}};
  double most = 0;
  for (const auto& run : c.runs) most = std::max(most, run.energy_j.value_or(0));
  for (std::size_t i = 0; i < c.runs.size(); ++i) {
    const auto& run = c.runs[i];
    std::optional<double> share;
    if (run.energy_j && most > 0) share = *run.energy_j / most;
    const bool samples = std::any_of(c.runs.begin(), c.runs.end(), [](const auto& r) { return r.energy_per_sample_j; });
    table.rows.push_back({printable(run.name), run.duration_s ? ergometer::duration_text(*run.duration_s) : kMissing,
                          change_cell(c, i, "time"), with_unit(run.energy_j, "J"), with_unit(run.uncertainty_j, "J", 2),
                          change_cell(c, i, "energy"), with_unit(run.mean_power_w, "W"),
                          samples ? with_unit(run.energy_per_sample_j, "J") : "",
                          samples ? change_cell(c, i, "energy per sample") : "", bar(share, kBarWidth)});
  }
  std::string out = render_table(table, width);
  out += "\n";
  for (const auto& q : c.quantities) out += wrapped(printable(q.verdict), width, 2);
  if (c.quantities.empty()) out += "  nothing that is known of both runs can be compared\n";
  if (!c.caveats.empty()) out += "\nWarnings\n";
  for (const auto& caveat : c.caveats) out += wrapped(printable(caveat), width, 2);
  return out;
}

std::string comparison_json(const RunComparison& c) {
  return comparison_value(c).dump(2, ' ', false, ComparisonJson::error_handler_t::replace) + "\n";
}

PageText comparison_page(const RunComparison& c) {
  const ComparisonJson page{{"schema", "ergometer.page/1"}, {"kind", "comparison"}, {"comparison", comparison_value(c)}};
  std::string title = c.runs.front().name + " and ";
  title += c.runs.size() == 2 ? c.runs[1].name : fmt::format("{} others", c.runs.size() - 1);
  std::string fallback;
  for (const auto& q : c.quantities) fallback += q.verdict + ". ";
  return {title + " \xC2\xB7 Ergometer", fallback + "The figures of this page need JavaScript.",
          page.dump(-1, ' ', true, ComparisonJson::error_handler_t::replace)};
}

}  // namespace ergometer::cli
