// A study as the text of its page: the analysis' answers as plain values.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/decision.hpp"
#include "analysis/effects.hpp"
#include "analysis/statistics.hpp"
#include "report/page_study.hpp"
#include "report_pages.hpp"
#include "store/study_table_json.hpp"
#include "study_questions.hpp"

namespace ergometer::cli {
namespace {

PageInterval interval_of(const Bounds& bounds) { return {bounds.low, bounds.high}; }
std::optional<PageInterval> interval_of(const std::optional<Bounds>& bounds) {
  return bounds ? std::optional(interval_of(*bounds)) : std::nullopt;
}
PageChange change_for_page(const Change& change) { return {change.share, interval_of(change.interval)}; }

void add_centres(StudyPage& page) {
  std::map<std::pair<std::size_t, std::string>, std::vector<double>> values;
  for (const auto& run : page.table.runs) {
    if (run.verdict != Verdict::valid) continue;
    for (const auto& [name, value] : run.metrics) values[{run.cell, name}].push_back(value.value);
  }
  for (const auto& [key, list] : values)
    if (const auto centre = mean_with_t(list))
      page.centres.push_back({key.first, key.second, centre->value, interval_of(centre->interval), centre->count});
}

void add_scaling(StudyPage& page, const MetricPair& metrics) {
  for (const auto& [factor, metric, group, cells, law] : scaling_laws(page.table, metrics))
    page.fits.push_back({factor, metric, group, cells, law.a, law.b, law.c, law.r_squared, interval_of(law.b_interval),
                         law.held_out_error, law.x_min, law.x_max});
  for (const auto& [factor, group, rows] : scaling_tables(page.table, metrics)) {
    PageScaling out{factor, group, {}};
    for (const auto& row : rows) {
      PageScalingRow to{row.gpus, row.time_s.value, interval_of(row.time_s.interval), {}, {}, row.speed_up,
                        interval_of(row.speed_up_interval), row.efficiency, interval_of(row.efficiency_interval),
                        row.energy_ratio, interval_of(row.energy_ratio_interval)};
      if (row.energy_j) {
        to.energy = row.energy_j->value;
        to.energy_interval = interval_of(row.energy_j->interval);
      }
      out.rows.push_back(to);
    }
    page.scaling.push_back(std::move(out));
  }
  for (const auto& [work, rate] : energy_rates(page.table))
    page.rates.push_back({work, rate.joules_per_gpu_hour, rate.mean_power_per_gpu_w, interval_of(rate.interval),
                          rate.r_squared, rate.largest_deviation, rate.runs});
}

PageNumber number_of(const Centre& centre) { return {centre.value, interval_of(centre.interval)}; }

void add_p2(StudyPage& page) {
  const auto names = p2_names(page.table);
  if (!names) return;
  const auto p2 = p2_tables(page.table, *names);
  if (!p2) return page.missing.push_back("no tables by class of node: " + p2.error().message);
  PageClasses out;
  out.modelled = names->energy_j.starts_with("modelled");
  for (const auto& row : p2->rows)
    out.rows.push_back({row.node_class, row.phase, row.setting, number_of(row.runtime_s), number_of(row.energy_j),
                        row.mean_power_w, row.component_shares});
  for (const auto& r : p2->ratios)
    out.ratios.push_back({r.a, r.b, r.phase, r.setting, {r.runtime_ratio, interval_of(r.runtime_interval)},
                          {r.energy_ratio, interval_of(r.energy_interval)}, r.proxy_error, r.runtime_is_proxy});
  for (const auto& idle : p2->idle)
    out.idle.push_back({idle.node_class, idle.phase, idle.setting, number_of(idle.gpu_energy_j), idle.share, idle.penalty});
  for (const auto& even : p2->break_even)
    out.break_even.push_back({even.cpu_class, even.gpu_class, even.setting,
                              even.kind == BreakEven::Kind::at_batch     ? "at_batch"
                              : even.kind == BreakEven::Kind::gpu_always ? "gpu_always"
                                                                         : "cpu_always",
                              even.batch, even.low, even.high});
  page.missing.insert(page.missing.end(), p2->missing.begin(), p2->missing.end());
  page.classes = std::move(out);
}

void add_pick(StudyPage& page, const std::string& rule, const std::string& group, const std::vector<Option>& options,
              std::size_t reference, const std::optional<Pick>& pick) {
  if (!pick) return;
  PagePick out{rule,
               group,
               options[pick->best].cell,
               options[reference].cell,
               change_for_page(pick->time),
               change_for_page(pick->energy),
               {},
               pick->intervals_known};
  for (const auto i : pick->indistinguishable) out.alike.push_back(options[i].cell);
  page.picks.push_back(std::move(out));
}

// Settings are compared within the same work.
void add_decisions(StudyPage& page) {
  if (page.time_metric.empty() || page.energy_metric.empty()) {
    page.missing.push_back("no decision between settings: the study has no metric of time together with one of energy");
    return;
  }
  const auto& table = page.table;
  const auto factor = limit_factor(table);
  for (const auto& [name, cells] : cells_by_work(table)) {
    const auto options = options_of(table, page.time_metric, page.energy_metric, cells);
    if (!options) {
      page.missing.push_back(name.empty() ? options.error().message : name + ": " + options.error().message);
      continue;
    }
    if (options->empty()) continue;
    const auto front = pareto_front(*options);
    PageFront out{name, {}, {}, {}};
    for (const auto& o : *options) out.cells.push_back(o.cell);
    for (const auto i : front.front) out.front.push_back((*options)[i].cell);
    for (const auto i : front.maybe) out.maybe.push_back((*options)[i].cell);
    page.fronts.push_back(std::move(out));
    if (options->size() < 2) continue;
    const std::size_t reference = reference_option(table, *options, factor);
    add_pick(page, "least energy", name, *options, reference, least_energy(*options, reference));
    add_pick(page, "least energy, at most 10 % slower", name, *options, reference,
             least_energy_within(*options, reference, 0.1));
    add_pick(page, "least energy x time", name, *options, reference, least_energy_delay(*options, reference, 1));
    add_pick(page, "knee of the front", name, *options, reference, knee(*options, reference));
  }
}

void add_effects(StudyPage& page) {
  for (const auto& metric : {page.energy_metric, page.time_metric}) {
    if (metric.empty()) continue;
    const auto effects = effects_of(page.table, metric, false);
    if (!effects) {
      page.missing.push_back("no effects: " + effects.error().message);
      continue;
    }
    for (const auto& e : effects->effects) {
      PageEffect out{e.factors.front(), metric, {}, e.share, e.p_value, e.not_estimable};
      for (const auto& l : e.levels) out.levels.push_back({l.levels.front(), l.change, interval_of(l.interval)});
      page.effects.push_back(std::move(out));
    }
  }
}

}  // namespace

Result<PageText> study_page(const std::filesystem::path& study, const PageFactors& factors) {
  auto table = read_study_table(study);
  if (!table) return tl::unexpected(table.error());
  StudyPage page;
  page.table = std::move(*table);
  page.factors = factors;
  const auto metrics = comparison_metrics(page.table);
  page.time_metric = metrics.time;
  page.energy_metric = metrics.energy;
  for (std::size_t f = 0; f < page.table.factors.size(); ++f)
    if (is_work_factor(page.table.factors[f])) page.work.push_back(f);
  add_centres(page);
  add_scaling(page, metrics);
  add_decisions(page);
  add_effects(page);
  add_p2(page);
  const std::string title = page.table.name.empty() ? "Study" : page.table.name;
  std::size_t valid = 0;
  for (const auto& run : page.table.runs) valid += run.verdict == Verdict::valid ? 1 : 0;
  return PageText{
      title + " \xC2\xB7 Ergometer",
      fmt::format("{}: {} valid runs in {} cells. The figures of this page need JavaScript; the numbers alone "
                  "are in table.json, and `ergometer study show` prints them.",
                  title, valid, page.table.cells.size()),
      study_page_json(page)};
}

}  // namespace ergometer::cli
