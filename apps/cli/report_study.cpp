// A study as the text of its page: the analysis' answers as plain values.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/decision.hpp"
#include "analysis/effects.hpp"
#include "analysis/scaling.hpp"
#include "analysis/statistics.hpp"
#include "report/page_study.hpp"
#include "report_pages.hpp"
#include "store/study_table_json.hpp"

namespace ergometer::cli {
namespace {

using Cells = std::vector<std::size_t>;

PageInterval interval_of(const Bounds& bounds) { return {bounds.low, bounds.high}; }
std::optional<PageInterval> interval_of(const std::optional<Bounds>& bounds) {
  return bounds ? std::optional(interval_of(*bounds)) : std::nullopt;
}
PageChange change_for_page(const Change& change) { return {change.share, interval_of(change.interval)}; }

// Time and energy of the same amount of work.
struct MetricPair {
  std::string time, energy;
};

// Cells with a valid run that has all of `metrics`.
std::size_t cells_with(const StudyTable& table, std::initializer_list<std::string> metrics) {
  std::set<std::size_t> cells;
  for (const auto& run : table.runs)
    if (run.verdict == Verdict::valid &&
        std::all_of(metrics.begin(), metrics.end(), [&](const std::string& m) { return run.metrics.count(m) > 0; }))
      cells.insert(run.cell);
  return cells.size();
}

// By epoch where most cells have epochs, else whole runs; measured before modelled; else the first metrics of the right
// units, as an imported table may call them anything.
MetricPair pick_metrics(const StudyTable& table) {
  const std::size_t all = cells_with(table, {});
  for (const MetricPair& pair :
       {MetricPair{"seconds_per_epoch", "energy_per_epoch_j"}, MetricPair{"duration_s", "energy_j"},
        MetricPair{"seconds_per_epoch", "modelled_energy_per_epoch_j"}, MetricPair{"duration_s", "modelled_energy_j"}})
    if (const auto cells = cells_with(table, {pair.time, pair.energy}); cells > 0 && 2 * cells >= all) return pair;
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

bool is_numeric(const StudyFactor& factor) {
  std::size_t numbers = 0;
  for (const auto& value : factor.values) numbers += value && *value > 0 ? 1 : 0;
  return factor.levels.size() >= 2 && numbers == factor.levels.size();
}

// What `cell` has in common with its group: its levels of the factors that `keep` accepts and that vary at all.
template <class Keep>
std::string group_name(const StudyTable& table, std::size_t cell, Keep keep) {
  std::string out;
  for (std::size_t f = 0; f < table.factors.size(); ++f) {
    const auto& factor = table.factors[f];
    if (factor.levels.size() < 2 || !keep(f)) continue;
    if (!out.empty()) out += ", ";
    const auto& level = factor.levels[table.cells[cell].levels[f]];
    const bool named = !factor.values.empty() && !factor.values[table.cells[cell].levels[f]];
    out += named ? level : fmt::format("{} {}", factor.name, level);
  }
  return out;
}

template <class Keep>
std::map<std::string, Cells> groups_of(const StudyTable& table, Keep keep) {
  std::map<std::string, Cells> out;
  for (std::size_t cell = 0; cell < table.cells.size(); ++cell) out[group_name(table, cell, keep)].push_back(cell);
  return out;
}

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

// Against each factor of numbers, time and energy of every group of cells that differ in it alone.
void add_fits(StudyPage& page) {
  for (std::size_t f = 0; f < page.table.factors.size(); ++f) {
    const auto& factor = page.table.factors[f];
    if (!is_numeric(factor)) continue;
    for (const auto& [name, cells] : groups_of(page.table, [f](std::size_t other) { return other != f; })) {
      if (cells.size() < 3) continue;  // a law through two points says nothing
      for (const auto& metric : {page.time_metric, page.energy_metric}) {
        if (metric.empty()) continue;
        const auto points = points_of(page.table, factor.name, metric, cells);
        if (!points) continue;
        const auto law = fit_power_law(*points);
        if (!law) continue;
        page.fits.push_back({factor.name, metric, name, cells, law->a, law->b, law->c, law->r_squared,
                             interval_of(law->b_interval), law->held_out_error, law->x_min, law->x_max});
      }
    }
  }
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

// The reference is the uncapped device where the study varies a cap or a clock.
std::optional<std::string> reference_factor(const StudyTable& table) {
  for (const std::string name : {"power_limit", "graphics_clock", "clock"})
    for (const auto& f : table.factors)
      if (f.name == name && f.levels.size() > 1) return name;
  return std::nullopt;
}

// Settings are compared within the same work: factors of names (network, phase, data set) tell works apart, factors of
// numbers (cap, clock, GPUs, batch) are what a user chooses.
void add_decisions(StudyPage& page) {
  if (page.time_metric.empty() || page.energy_metric.empty()) {
    page.missing.push_back("no decision between settings: the study has no metric of time together with one of energy");
    return;
  }
  const auto& table = page.table;
  const auto factor = reference_factor(table);
  for (const auto& [name, cells] : groups_of(table, [&](std::size_t f) { return !is_numeric(table.factors[f]); })) {
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
  const auto metrics = pick_metrics(page.table);
  page.time_metric = metrics.time;
  page.energy_metric = metrics.energy;
  add_centres(page);
  add_fits(page);
  add_decisions(page);
  add_effects(page);
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
