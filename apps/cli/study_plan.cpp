// `ergometer study plan`: what a study would do here, and what the machine lacks for it. Changes nothing.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "device/remote/remote_control.hpp"
#include "report/table.hpp"
#include "report/units.hpp"
#include "run_live.hpp"
#include "run_process.hpp"
#include "study.hpp"
#include "study/cell_command.hpp"
#include "study/launch.hpp"
#include "study/progress.hpp"

namespace ergometer::cli {
namespace {

constexpr std::size_t kShownRuns = 20;

std::string count_text(std::size_t n, const char* one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s"); }

std::string repetitions_text(const RunRules& runs) {
  if (!runs.until) return count_text(static_cast<std::size_t>(runs.repetitions), "repetition");
  return fmt::format("{} to {} repetitions, until {} is known to {:g} %", runs.repetitions, runs.until->at_most,
                     runs.until->metric, 100 * runs.until->interval);
}

void print_head(const PlannedStudy& study) {
  const auto& file = study.file;
  fmt::print("study {}{}{}\n", file.name, file.description.empty() ? "" : ": ", printable(file.description));
  fmt::print("  {} ({}), {}, {} {} (seed {})\n", count_text(study.plan.cells.size(), "cell"), to_word(file.design.kind),
             repetitions_text(file.runs), count_text(study.plan.runs.size(), "run"),
             file.runs.randomise ? "in an order drawn anew in each block" : "in the order of the cells", study.plan.seed);
  Table table;
  table.columns = {{"Factor", false, 0}, {"Levels", false, 0}, {"Here", false, 0}};
  for (std::size_t f = 0; f < file.factors.size(); ++f) {
    std::string here;
    const auto& factor = file.factors[f];
    if (f < study.plan.level_values.size() && std::ranges::any_of(factor.levels, [](const auto& l) { return l.ends_with('%'); }))
      for (const auto& value : study.plan.level_values[f])
        here += fmt::format("{}{}", here.empty() ? "" : ", ", value ? fmt::format("{:g} {}", *value, factor.unit) : kMissing);
    table.rows.push_back({printable(factor.name), printable(shortened(fmt::format("{}", fmt::join(factor.levels, ", ")), 160)), here});
  }
  fmt::print("\n{}", render_table(table, static_cast<std::size_t>(std::max(terminal_width(), 160)), 2));
}

// "gpu/0/power to gpu/7/power (8): 100 W, 200 W, 250 W".
void print_controls(const std::vector<ControlSetting>& settings) {
  if (settings.empty()) return;
  std::map<std::string, std::vector<std::string>> values;  // control -> what it will be set to
  std::vector<std::string> order;
  for (const auto& setting : settings) {
    const auto& name = setting.control->describe().name;
    if (!values.contains(name)) order.push_back(name);
    values[name].push_back(to_text(setting.value));
  }
  fmt::print("\n  it sets, and puts back as found:\n");
  std::vector<std::pair<std::vector<std::string>, std::string>> groups;  // names, their values
  for (const auto& name : order) {
    auto& list = values[name];
    std::ranges::sort(list, {}, [](const std::string& text) { return std::pair(text.size(), text); });
    const auto text = fmt::format("{}", fmt::join(list, ", "));
    const auto known = std::ranges::find_if(groups, [&](const auto& group) {
      return group.second == text && knob_of(group.first.front()) == knob_of(name);
    });
    if (known == groups.end())
      groups.push_back({{name}, text});
    else
      known->first.push_back(name);
  }
  for (const auto& [names, text] : groups)
    fmt::print("    {}: {}\n", names.size() == 1 ? names.front() : fmt::format("{} to {} ({})", names.front(), names.back(), names.size()), text);
}

void print_lacks(const PlannedStudy& study, std::vector<Error> lacking, const Host& host) {
  const auto launchers = missing_programs(study.file, study.plan.cells, [](const std::string& name) {
    return find_command(name).has_value();
  });
  lacking.insert(lacking.end(), launchers.begin(), launchers.end());
  for (const auto& setting : survey_settings(study.file, study.plan.cells, study.machine).settings) {
    const auto& info = setting.control->describe();
    if (info.writable && !*info.writable && !daemon_may_control(host)) {
      lacking.push_back({ErrorCode::permission_denied, fmt::format("{} may not be set by this user", info.name), permission_remedy()});
      break;
    }
  }
  if (lacking.empty()) return;
  fmt::print("\n  this machine lacks:\n");
  for (const auto& error : lacking) {
    fmt::print("    {}\n", printable(error.message));
    if (!error.hint.empty()) fmt::print("      {}\n", printable(error.hint));
  }
}

void print_runs(const PlannedStudy& study, bool all) {
  const std::size_t shown = all ? study.plan.runs.size() : std::min(kShownRuns, study.plan.runs.size());
  Table table;
  table.columns = {{"Run", true, 0}, {"Block", true, 0}, {"Cell", true, 0}};
  for (const auto& factor : study.file.factors) table.columns.push_back({printable(factor.name), false, 0});
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& run = study.plan.runs[i];
    std::vector<std::string> row{fmt::to_string(i), fmt::to_string(run.repetition), fmt::to_string(run.cell)};
    const auto& levels = study.plan.cells[run.cell].levels;
    for (std::size_t f = 0; f < levels.size(); ++f) row.push_back(printable(study.file.factors[f].levels[levels[f]]));
    table.rows.push_back(std::move(row));
  }
  fmt::print("\n{}", render_table(table, 1000, 2));
  if (shown < study.plan.runs.size())
    fmt::print("  ... and {} more: --all shows every run\n", study.plan.runs.size() - shown);
}

void print_time(const PlannedStudy& study, const StudyTarget& target) {
  std::optional<double> expected;
  if (target.exists)
    if (const auto state = read_study_state(target.folder, study.plan))
      expected = progress_of(study.file, study.plan, *state).left_s;
  const auto& runs = study.file.runs;
  if (expected)
    fmt::print("\n  estimated time that is left: {}\n", ergometer::duration_text(*expected));
  else if (runs.time_out)
    fmt::print("\n  estimated time: not known before the first runs; by the time-out at most {}\n",
               ergometer::duration_text(seconds(*runs.time_out + runs.cool_down.time) * static_cast<double>(study.plan.runs.size())));
  else
    fmt::print("\n  estimated time: not known before the first runs\n");
  if (runs.time_budget) fmt::print("  it ends after {} at the latest\n", ergometer::duration_text(seconds(*runs.time_budget)));
}

}  // namespace

int study_error(const Error& error) {
  const bool users = error.code == ErrorCode::invalid_argument || error.code == ErrorCode::not_found ||
                     error.code == ErrorCode::corrupt || error.code == ErrorCode::exists;
  return report_error(error, users ? kUsage : kCannotMeasure);
}

int study_plan(const Context& context, const StudyOptions& options) {
  const auto target = study_target(options);
  if (!target) return study_error(target.error());
  const auto study = plan_study(context, options, *target);
  if (!study) return study_error(study.error());
  print_head(*study);
  const auto command = command_of(study->file, study->plan.cells.front().levels);
  if (!command) return study_error(command.error());
  fmt::print("\n  cell 0 runs: {}\n", printable(fmt::format("{}", fmt::join(command->words, " "))));
  if (study->file.where.kind != ExecutorKind::here) fmt::print("  through {}\n", to_word(study->file.where.kind));
  auto survey = survey_settings(study->file, study->plan.cells, study->machine);
  print_controls(survey.settings);
  print_lacks(*study, std::move(survey.lacking), context.host());
  print_time(*study, *target);
  print_runs(*study, options.all);
  fmt::print("\n  folder: {}{}\n", target->folder.string(), target->exists ? "" : " (not there yet)");
  return 0;
}

}  // namespace ergometer::cli
