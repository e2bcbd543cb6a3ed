// Tables with a row a run.
//   Zeus power traces (trace/power_*.csv of its NSDI'23 artifact): time_per_epoch in s, average_power in W; the energy is
//   their product, as Zeus itself takes it.
//   Zeus windows (ZeusMonitor's log_file): start_time, window_name, elapsed_time in s, gpuN_energy in J.
//   codecarbon's emissions.csv: duration in s, energies in kWh, emissions in kg.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/number.hpp"
#include "base/text.hpp"
#include "store/import/readers.hpp"

namespace ergometer::foreign {
namespace {

struct FactorColumn {
  std::string_view column;
  const char* name;
  const char* unit;
};
struct MetricColumn {
  std::string_view column;
  StudyMetric metric;
  double factor = 1;
  bool zero_is_missing = false;  // the program writes 0 for what it did not measure
};
struct StudyForm {
  std::vector<std::string_view> needed;  // columns that tell the form
  std::vector<FactorColumn> factors;     // those that the file has
  std::vector<MetricColumn> metrics;
  std::string description;
  std::vector<Warning> warnings;
};

constexpr double kJoulesPerKwh = 3.6e6;

const std::vector<StudyForm>& study_forms() {
  static const std::vector<StudyForm> forms{
      {{"time_per_epoch", "average_power"},
       {{"dataset", "dataset", ""},
        {"network", "network", ""},
        {"batch_size", "batch_size", ""},
        {"optimizer", "optimizer", ""},
        {"power_limit", "power_limit", "W"}},
       {{"time_per_epoch", {"seconds_per_epoch", "time per epoch", "s", true}},
        {"average_power", {"mean_power_w", "mean power", "W", true}}},
       "imported from a Zeus power trace",
       {}},
      {{"window_name", "elapsed_time"},
       {{"window_name", "window", ""}},
       {{"elapsed_time", {"duration_s", "time", "s", true}}},
       "imported from a ZeusMonitor log",
       {}},
      {{"emissions", "duration", "energy_consumed"},
       {{"project_name", "project", ""},
        {"experiment_id", "experiment", ""},
        {"cpu_model", "cpu_model", ""},
        {"gpu_model", "gpu_model", ""},
        {"tracking_mode", "tracking_mode", ""}},
       {{"duration", {"duration_s", "time", "s", true}},
        {"energy_consumed", {"energy_j", "energy", "J", true}, kJoulesPerKwh, true},
        {"cpu_energy", {"cpu_energy_j", "energy of CPUs", "J", true}, kJoulesPerKwh, true},
        {"gpu_energy", {"gpu_energy_j", "energy of GPUs", "J", true}, kJoulesPerKwh, true},
        {"ram_energy", {"dram_energy_j", "energy of memory", "J", true}, kJoulesPerKwh, true},
        {"emissions", {"emissions_kg", "emissions", "kg", true}, 1, true}},
       "imported from codecarbon",
       {{"import-estimates",
         "codecarbon estimates the memory, and the CPUs where it may not read RAPL; the file does not say which",
         "measure with ergometer run to know what was measured"}}},
  };
  return forms;
}

std::optional<std::size_t> column_at(const std::vector<std::string>& header, std::string_view name) {
  for (std::size_t i = 0; i < header.size(); ++i)
    if (lower(trim(header[i])) == name) return i;
  return std::nullopt;
}

const StudyForm* form_of(const std::vector<std::string>& header) {
  for (const auto& form : study_forms())
    if (std::all_of(form.needed.begin(), form.needed.end(), [&](auto name) { return column_at(header, name); }))
      return &form;
  return nullptr;
}

// "250" and "250.0" are one level; numbers are shown with their unit.
std::string level_text(std::string_view field, const std::string& unit) {
  if (const auto number = parse_double(field)) return format_double(*number) + unit;
  return std::string(field);
}

// Collects rows; levels and cells follow from them.
class StudyRows {
 public:
  explicit StudyRows(StudyTable& table) : table_(table) {}
  void add(const std::vector<std::string_view>& levels, StudyRun run) {
    StudyCell cell;
    for (std::size_t f = 0; f < levels.size(); ++f) cell.levels.push_back(level(table_.factors[f], levels[f]));
    const auto [it, fresh] = cells_.emplace(cell.levels, table_.cells.size());
    if (fresh) table_.cells.push_back(std::move(cell));
    run.cell = it->second;
    run.repetition = counts_[it->second]++;
    run.order = static_cast<int>(table_.runs.size());
    table_.runs.push_back(std::move(run));
  }

 private:
  std::size_t level(StudyFactor& factor, std::string_view field) {
    const auto [it, fresh] = levels_[factor.name].emplace(level_text(field, factor.unit), factor.levels.size());
    if (fresh) {
      factor.levels.push_back(it->first);
      factor.values.push_back(parse_double(field));
    }
    return it->second;
  }
  StudyTable& table_;
  std::map<std::string, std::map<std::string, std::size_t>> levels_;
  std::map<std::vector<std::size_t>, std::size_t> cells_;
  std::map<std::size_t, int> counts_;
};

// Levels that are numbers in ascending order, so that tables and figures read from small to large.
void sort_levels(StudyTable& table) {
  for (std::size_t f = 0; f < table.factors.size(); ++f) {
    auto& factor = table.factors[f];
    if (std::any_of(factor.values.begin(), factor.values.end(), [](const auto& v) { return !v; })) continue;
    std::vector<std::size_t> order(factor.levels.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return *factor.values[a] < *factor.values[b]; });
    StudyFactor sorted{factor.name, factor.unit, {}, {}};
    std::vector<std::size_t> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      sorted.levels.push_back(factor.levels[order[i]]);
      sorted.values.push_back(factor.values[order[i]]);
    }
    factor = std::move(sorted);
    for (auto& cell : table.cells) cell.levels[f] = place[cell.levels[f]];
  }
}

struct MetricPlace {
  std::size_t at;
  StudyMetric metric;
  double factor;
  bool zero_is_missing;
};

std::vector<MetricPlace> metric_places(const StudyForm& form, const std::vector<std::string>& header) {
  std::vector<MetricPlace> out;
  for (const auto& m : form.metrics)
    if (const auto at = column_at(header, m.column)) out.push_back({*at, m.metric, m.factor, m.zero_is_missing});
  // gpu0_energy, cpu1_energy, ...: as many as the machine has.
  for (std::size_t i = 0; i < header.size(); ++i) {
    const auto name = lower(trim(header[i]));
    const bool device = name.size() > 10 && (name.starts_with("gpu") || name.starts_with("cpu")) && is_digit(name[3]);
    if (device && name.ends_with("_energy"))
      out.push_back({i, {name + "_j", "energy of " + name.substr(0, name.size() - 7), "J", true}, 1, false});
  }
  return out;
}

// What follows from the columns, where they are all known.
void add_derived(StudyRun& run, const std::vector<MetricPlace>& places) {
  const auto value = [&](const char* name) -> const StudyValue* {
    const auto it = run.metrics.find(name);
    return it == run.metrics.end() ? nullptr : &it->second;
  };
  const auto *time = value("seconds_per_epoch"), *power = value("mean_power_w");
  if (time && power) run.metrics["energy_per_epoch_j"] = {time->value * power->value, std::nullopt};
  double sum = 0;
  std::size_t devices = 0, known = 0;
  for (const auto& place : places) {
    if (!place.metric.name.ends_with("_energy_j") || !is_digit(place.metric.name[3])) continue;
    ++devices;
    if (const auto* energy = value(place.metric.name.c_str())) sum += energy->value, ++known;
  }
  if (devices > 0 && known == devices) run.metrics["energy_j"] = {sum, std::nullopt};
}

}  // namespace

bool is_study_csv(const std::vector<std::string>& header) { return form_of(header) != nullptr; }

Result<StudyTable> read_study_csv(ForeignCsv& csv, const std::string& source) {
  const StudyForm& form = *form_of(csv.header());
  StudyTable table;
  table.name = source;
  table.description = form.description;
  table.warnings = form.warnings;
  std::vector<std::size_t> factor_places;
  for (const auto& f : form.factors) {
    const auto at = column_at(csv.header(), f.column);
    if (!at) continue;
    factor_places.push_back(*at);
    table.factors.push_back({f.name, f.unit, {}, {}});
  }
  const auto places = metric_places(form, csv.header());
  for (const auto& place : places) table.metrics.push_back(place.metric);
  StudyRows rows(table);
  std::size_t bad = 0, first_bad = 0;
  std::vector<std::string_view> fields, levels;
  while (csv.next(fields)) {
    levels.clear();
    for (const std::size_t at : factor_places) levels.push_back(fields[at]);
    StudyRun run;
    run.verdict = Verdict::valid;
    bool readable = true;
    for (const auto& place : places) {
      const auto number = foreign_number(fields[place.at], "", UnitKind::plain, csv.decimal_comma());
      readable = readable && number.readable;
      if (number.value && !(place.zero_is_missing && *number.value == 0))
        run.metrics[place.metric.name] = {*number.value * place.factor, std::nullopt};
    }
    if (!readable && bad++ == 0) first_bad = csv.line();
    if (!readable) continue;
    add_derived(run, places);
    if (run.metrics.empty()) run.verdict = Verdict::missing;
    rows.add(levels, std::move(run));
  }
  if (table.runs.empty())
    return fail(ErrorCode::corrupt, fmt::format("{} has no row that can be read", source),
                bad ? fmt::format("the first that cannot is line {}", first_bad) : "");
  for (const auto& metric : {StudyMetric{"energy_per_epoch_j", "energy per epoch", "J", true},
                             StudyMetric{"energy_j", "energy", "J", true}}) {
    const bool listed = std::any_of(table.metrics.begin(), table.metrics.end(),
                                    [&](const StudyMetric& m) { return m.name == metric.name; });
    const bool used = std::any_of(table.runs.begin(), table.runs.end(),
                                  [&](const StudyRun& r) { return r.metrics.contains(metric.name); });
    if (used && !listed) table.metrics.push_back(metric);
  }
  sort_levels(table);
  warn_of_left_out(table.warnings, source, bad, first_bad, "a value in them is no number");
  warn_of_left_out(table.warnings, source, csv.left_out(), csv.first_left_out(), "they have another number of fields");
  return table;
}

StudyTable join_studies(std::vector<std::pair<std::string, StudyTable>> studies) {
  if (studies.size() == 1) return std::move(studies.front().second);
  StudyTable out;
  out.factors.push_back({"file", "", {}, {}});
  std::vector<std::string> names;
  for (auto& [name, study] : studies) {
    names.push_back(name);
    for (const auto& factor : study.factors)
      if (std::none_of(out.factors.begin(), out.factors.end(), [&](const auto& f) { return f.name == factor.name; }))
        out.factors.push_back({factor.name, factor.unit, {}, {}});
    for (const auto& metric : study.metrics)
      if (std::none_of(out.metrics.begin(), out.metrics.end(), [&](const auto& m) { return m.name == metric.name; }))
        out.metrics.push_back(metric);
    for (const auto& warning : study.warnings)
      if (std::find(out.warnings.begin(), out.warnings.end(), warning) == out.warnings.end())
        out.warnings.push_back(warning);
  }
  out.name = fmt::format("{}", fmt::join(names, ", "));
  out.description = studies.front().second.description;
  StudyRows rows(out);
  for (const auto& [name, study] : studies) {
    for (const auto& run : study.runs) {
      std::vector<std::string> texts;
      std::vector<std::string_view> levels{name};
      texts.reserve(out.factors.size());
      for (std::size_t f = 1; f < out.factors.size(); ++f) {
        std::string& text = texts.emplace_back();
        for (std::size_t g = 0; g < study.factors.size(); ++g) {
          if (study.factors[g].name != out.factors[f].name) continue;
          const std::size_t level = study.cells[run.cell].levels[g];
          const auto& value = study.factors[g].values[level];
          text = value ? format_double(*value) : study.factors[g].levels[level];
        }
        levels.push_back(text);
      }
      rows.add(levels, run);
    }
  }
  // The names of files are no numbers, even where they look like some.
  for (auto& value : out.factors[0].values) value.reset();
  sort_levels(out);
  return out;
}

}  // namespace ergometer::foreign
