// `ergometer study status` and `ergometer study show`: how far a study is, and what came out of it.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "analysis/decision.hpp"
#include "analysis/effects.hpp"
#include "analysis/study_slice.hpp"
#include "report/table.hpp"
#include "report/units.hpp"
#include "store/study_table_json.hpp"
#include "study.hpp"
#include "study_answers.hpp"
#include "study/cell_command.hpp"
#include "study/progress.hpp"

namespace ergometer::cli {
namespace {
namespace fs = std::filesystem;

constexpr double kSlowdown = 0.1, kZeusEta = 0.5;

std::string when_text(std::int64_t unix_s) {
  const std::time_t time = unix_s;
  std::tm local{};
  return ::localtime_r(&time, &local) ? fmt::format("{:%Y-%m-%d %H:%M:%S}", local) : std::string(kMissing);
}

Result<StudyFolder> opened(const StudyOptions& options) {
  const auto target = study_target(options);
  if (!target) return tl::unexpected(target.error());
  if (!target->exists)
    return fail(ErrorCode::not_found, fmt::format("the study {} has not begun: there is no {}", options.study, target->folder.string()),
                fmt::format("begin it with: ergometer study run {}", options.study));
  return open_study(target->folder);
}

// --- status ---------------------------------------------------------------------------------------------------------

void print_troubles(const StudyFolder& study, const StudyState& state) {
  for (std::size_t i = 0; i < study.plan.runs.size(); ++i) {
    const auto& run = state.runs[i];
    if (!run.end || run.end->verdict == ergometer::Verdict::valid) continue;
    fmt::print("  run {} ({}): {}\n", i, printable(cell_text(study.file, study.plan.cells[study.plan.runs[i].cell].levels)),
               to_word(run.end->verdict));
    for (const auto& reason : run.end->reasons) fmt::print("      {}\n", printable(reason));
    if (run.end->verdict == ergometer::Verdict::failed) fmt::print("      output: {}.log\n", (study.path / run.folder).string());
  }
}

// --- show -----------------------------------------------------------------------------------------------------------

struct ShownMetric {
  const char* name;
  const char* title;
  int rank;
};
constexpr ShownMetric kShown[] = {{"seconds_per_epoch", "s/epoch", 0},
                                  {"energy_per_epoch_j", "J/epoch", 0},
                                  {"counter_energy_per_epoch_j", "counter", 2},
                                  {"integral_energy_per_epoch_j", "integral", 3},
                                  {"product_energy_per_epoch_j", "s x W", 4},
                                  {"modelled_energy_per_epoch_j", "J/epoch (model)", 1},
                                  {"samples_per_s", "samples/s", 5},
                                  {"energy_per_sample_j", "J/sample", 6},
                                  {"modelled_energy_per_sample_j", "J/sample (model)", 6},
                                  {"duration_s", "time", 1},
                                  {"energy_j", "energy", 1},
                                  {"modelled_energy_j", "energy (model)", 2},
                                  {"mean_power_w", "power", 7},
                                  {"gpu_memory_used_bytes", "GPU memory", 8},
                                  {"gpu_memory_active_ratio", "mem. active", 9},
                                  {"gpu_active_ratio", "GPU active", 10},
                                  {"sm_active_ratio", "SM util.", 9},
                                  {"loss", "loss", 8},
                                  {"accuracy", "accuracy", 11},
                                  {"cpu_ratio", "CPUs", 12}};

struct CellCounts {
  int valid = 0, invalid = 0, failed = 0, missing = 0;
};

std::string count_of(const CellCounts& counts) {
  std::string text = fmt::to_string(counts.valid);
  if (counts.invalid > 0) text += fmt::format(", {} invalid", counts.invalid);
  if (counts.failed > 0) text += fmt::format(", {} failed", counts.failed);
  return text;
}

void print_cells(const StudyTable& table) {
  std::vector<CellCounts> counts(table.cells.size());
  // Values by cell and metric in one pass: a study may have thousands of runs.
  std::vector<std::map<std::string, std::vector<double>>> values(table.cells.size());
  std::vector<std::map<std::string, double>> alone(table.cells.size());
  for (const auto& run : table.runs) {
    auto& count = counts[run.cell];
    ++(run.verdict == ergometer::Verdict::valid     ? count.valid
       : run.verdict == ergometer::Verdict::invalid ? count.invalid
       : run.verdict == ergometer::Verdict::failed  ? count.failed
                                         : count.missing);
    if (run.verdict != ergometer::Verdict::valid) continue;
    for (const auto& [name, value] : run.metrics) {
      values[run.cell][name].push_back(value.value);
      if (value.uncertainty) alone[run.cell][name] = *value.uncertainty;
    }
  }
  Table out;
  for (const auto& factor : table.factors) out.columns.push_back({printable(factor.name), false, 0});
  out.columns.push_back({"Runs", true, 0});
  for (const auto& shown : kShown) out.columns.push_back({shown.title, true, shown.rank});
  for (std::size_t cell = 0; cell < table.cells.size(); ++cell) {
    const auto& count = counts[cell];
    if (count.valid + count.invalid + count.failed == 0) continue;
    std::vector<std::string> row;
    for (std::size_t f = 0; f < table.factors.size(); ++f)
      row.push_back(printable(table.factors[f].levels[table.cells[cell].levels[f]]));
    row.push_back(count_of(count));
    for (const auto& shown : kShown) {
      const auto found = values[cell].find(shown.name);
      auto centre = found == values[cell].end() ? std::nullopt : mean_with_t(found->second);
      if (centre && !centre->interval && alone[cell].contains(shown.name)) {
        const double half = alone[cell].at(shown.name);
        centre->interval = Bounds{centre->value - half, centre->value + half};
      }
      row.push_back(centre ? centre_text(*centre, unit_of_metric(table, shown.name)) : "");
    }
    out.rows.push_back(std::move(row));
  }
  if (out.rows.empty()) return static_cast<void>(fmt::print("  no run has ended yet\n"));
  fmt::print("{}", render_table(out, study_width(), 2));
}

std::string effect_name(const StudyTable& table, const Effect& effect) {
  std::string name;
  for (const auto f : effect.factors) name += fmt::format("{}{}", name.empty() ? "" : " x ", table.factors[f].name);
  return name;
}

std::string level_name(const StudyTable& table, const Effect& effect, const LevelEffect& level) {
  std::string name;
  for (std::size_t i = 0; i < effect.factors.size(); ++i)
    name += fmt::format("{}{}", i ? ", " : "", table.factors[effect.factors[i]].levels[level.levels[i]]);
  return name;
}

void print_effects(const StudyTable& table, const std::string& metric) {
  const auto effects = effects_of(table, metric);
  if (!effects) {
    fmt::print("\n  effects: {}\n", printable(effects.error().message));
    return;
  }
  const auto found = std::ranges::find(table.metrics, metric, &StudyMetric::name);
  fmt::print("\nEffects on {} (mean {}, {} runs):\n", found->title, study_number(effects->mean, found->unit), effects->runs);
  Table out;
  out.columns = {{"Effect", false, 0}, {"Levels", false, 0}, {"Variance", true, 0}, {"p", true, 0}};
  for (const auto& effect : effects->effects) {
    std::string levels;
    // Of an interaction the names alone say enough, unless it is certain.
    if (effect.factors.size() == 1 || effect.significant())
      for (const auto& level : effect.levels)
        levels += fmt::format("{}{}: {:+.1f} %", levels.empty() ? "" : ";  ", level_name(table, effect, level), 100 * level.change);
    if (!effect.not_estimable.empty()) levels = effect.not_estimable;
    out.rows.push_back({printable(effect_name(table, effect)), printable(shortened(levels, 140)),
                        effect.not_estimable.empty() ? percent_text(effect.share) : "",
                        effect.p_value ? (*effect.p_value < 0.001 ? "<0.001" : fmt::format("{:.3f}", *effect.p_value)) : ""});
  }
  fmt::print("{}", render_table(out, 1000, 2));
}

std::string change_text(const Change& change) {
  std::string text = fmt::format("{:+.1f} %", 100 * change.share);
  if (change.interval) text += fmt::format(" [{:+.1f}, {:+.1f}]", 100 * change.interval->low, 100 * change.interval->high);
  return text;
}

// The cells that --where leaves. Errors: of cells_at; a word that is no FACTOR=LEVEL; nothing left.
Result<StudyTable> part_of(StudyTable table, const std::vector<std::string>& where) {
  if (where.empty()) return table;
  LevelsByFactor fixed;
  for (const auto& text : where) {
    const auto equals = text.find('=');
    if (equals == std::string::npos)
      return fail(ErrorCode::invalid_argument, fmt::format("--where cannot be \"{}\"", text), "write --where FACTOR=LEVEL");
    fixed[text.substr(0, equals)] = text.substr(equals + 1);
  }
  const auto cells = cells_at(table, fixed);
  if (!cells) return tl::unexpected(cells.error());
  if (cells->empty())
    return fail(ErrorCode::invalid_argument, fmt::format("no cell of the study is at {}", fmt::join(where, " and ")),
                "leave one out; the study does not have all combinations");
  return table_at(std::move(table), *cells);
}

void print_pick(const std::vector<Option>& options, std::size_t reference, const char* rule, const std::optional<Pick>& pick) {
  if (!pick) return;
  std::string told = pick->best == reference
                         ? "no other setting is better"
                         : fmt::format("time {}, energy {}", change_text(pick->time), change_text(pick->energy));
  if (!pick->intervals_known) told += "; measured once";
  if (!pick->indistinguishable.empty()) told += fmt::format("; not told apart from {} more", pick->indistinguishable.size());
  fmt::print("    {}: {} ({})\n", rule, printable(options[pick->best].name), told);
}

// The largest power limit that the study set, which Zeus's cost needs.
std::optional<double> largest_limit_w(const StudyTable& table) {
  std::optional<double> largest;
  for (const auto& factor : table.factors)
    if (factor.name == "power_limit" && factor.unit == "W")
      for (const auto& value : factor.values)
        if (value) largest = std::max(largest.value_or(*value), *value);
  return largest;
}

// Settings are compared where the work is the same.
void print_best(const StudyTable& table, const MetricPair& metrics) {
  if (metrics.energy.empty() || metrics.time.empty()) return;
  const auto factor = limit_factor(table);
  const auto limit = largest_limit_w(table);
  bool told = false;
  for (const auto& [work, cells] : cells_by_work(table)) {
    const auto options = options_of(table, metrics.time, metrics.energy, cells);
    if (!options || options->size() < 2) continue;
    if (!told)
      fmt::print("\nBest settings, by {} and {}:\n", metric_of(table, metrics.energy).value()->title,
                 metric_of(table, metrics.time).value()->title);
    told = true;
    const auto reference = reference_option(table, *options, factor);
    fmt::print("  {}against {}{}:\n", work.empty() ? "" : printable(work) + ", ", printable((*options)[reference].name),
               factor ? "" : ", the fastest");
    print_pick(*options, reference, "least energy", least_energy(*options, reference));
    print_pick(*options, reference, "least energy, at most 10 % slower", least_energy_within(*options, reference, kSlowdown));
    print_pick(*options, reference, "least energy x time", least_energy_delay(*options, reference, 1));
    print_pick(*options, reference, "least energy x time^2", least_energy_delay(*options, reference, 2));
    if (limit)
      print_pick(*options, reference, "least 0.5 energy + 0.5 limit x time (Zeus)",
                 least_zeus_cost(*options, reference, kZeusEta, *limit));
    print_pick(*options, reference, "knee of time and energy", knee(*options, reference));
  }
}

}  // namespace

int study_status(const StudyOptions& options) {
  const auto study = opened(options);
  if (!study) return study_error(study.error());
  const auto state = read_study_state(study->path, study->plan);
  if (!state) return study_error(state.error());
  const auto progress = progress_of(study->file, study->plan, *state);
  const bool held = ControlLock::is_held(study->path / "lock");
  fmt::print("study {} in {}\n", study->file.name, study->path.string());
  fmt::print("  {} of {} runs: {} valid, {} invalid, {} failed{}\n", progress.planned - progress.left, progress.planned,
             progress.valid, progress.invalid, progress.failed,
             progress.submitted > 0 ? fmt::format("; {} in batch jobs", progress.submitted) : "");
  if (state->first_unix_s)
    fmt::print("  first run {}, last news {}\n", when_text(*state->first_unix_s), when_text(*state->last_unix_s));
  if (progress.energy_j)
    fmt::print("  energy so far: {}{}\n", with_unit(*progress.energy_j, "J"), progress.energy_modelled ? " (model)" : "");
  if (progress.left > 0)
    fmt::print("  {}; estimated time that is left: {}\n", held ? "it is running" : "it is not running",
               progress.left_s ? ergometer::duration_text(*progress.left_s) : std::string("not known"));
  print_troubles(*study, *state);
  return 0;
}

int study_show(const StudyOptions& options) {
  StudyTable table;
  if (!is_study_folder(options.study) && is_study(options.study)) {  // an import has a table and no plan
    auto read = read_study_table(options.study);
    if (!read) return study_error(read.error());
    table = std::move(*read);
  } else {
    const auto study = opened(options);
    if (!study) return study_error(study.error());
    const auto state = read_study_state(study->path, study->plan);
    if (!state) return study_error(state.error());
    table = table_of(study->file, study->plan, *state);
    // Collected anew, so that reports see what batch jobs have done meanwhile.
    static_cast<void>(write_study_table(study->path, table));
  }
  auto part = part_of(std::move(table), options.where);
  if (!part) return study_error(part.error());
  table = std::move(*part);
  if (options.json) {
    fmt::print("{}", study_table_to_json(table));
    return 0;
  }
  const auto metrics = comparison_metrics(table);
  const auto metric = !options.metric.empty() ? options.metric : metrics.energy.empty() ? metrics.time : metrics.energy;
  if (!options.metric.empty())
    if (const auto known = metric_of(table, options.metric); !known) return study_error(known.error());
  fmt::print("study {}{}{}\n\n", table.name, table.description.empty() ? "" : ": ", printable(table.description));
  print_cells(table);
  if (!metric.empty()) print_effects(table, metric);
  print_best(table, metrics);
  print_scaling(table, metrics);
  print_p2(table);
  if (auto told = print_predictions(table, metrics, options.predict); !told) return study_error(told.error());
  for (const auto& warning : table.warnings)
    fmt::print("\nwarning: {}\n  {}\n", printable(warning.message), printable(warning.remedy));
  return 0;
}

}  // namespace ergometer::cli
