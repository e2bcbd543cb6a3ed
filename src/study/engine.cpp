#include "study/engine.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>

#include "analysis/statistics.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "store/study_table_json.hpp"
#include "study/child.hpp"
#include "study/launch.hpp"
#include "study/validity.hpp"

namespace ergometer {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// Running clocks are looked at so often.
constexpr Nanos kLookEvery = 200ms;
// A command that failed in so many different cells and worked in none is not run in the others.
constexpr std::size_t kFailuresToStop = 3;
// table.json is written anew at most so often while the study runs.
constexpr Nanos kTableEvery = 10s;
// What an engine that was killed left running ends within seconds; it must not run beside the next run.
constexpr Nanos kOrphanPatience = 40s;

// A pipe on which `ergometer run` tells the watts of now, a number a line.
class LivePower {
 public:
  LivePower() {
    int fds[2] = {-1, -1};
    if (::pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) return;
    read_ = fds[0];
    write_ = fds[1];
  }
  ~LivePower() {
    close_fd(read_);
    close_fd(write_);
  }
  LivePower(const LivePower&) = delete;
  LivePower& operator=(const LivePower&) = delete;
  [[nodiscard]] int write_end() const { return write_; }
  // The newest number, if one has come.
  std::optional<double> now() {
    char bytes[512];
    for (ssize_t n; read_ >= 0 && (n = ::read(read_, bytes, sizeof bytes)) > 0;) text_.append(bytes, static_cast<std::size_t>(n));
    const auto end = text_.rfind('\n');
    if (end != std::string::npos) {
      const auto begin = end == 0 ? std::string::npos : text_.rfind('\n', end - 1);
      watts_ = parse_double(std::string_view(text_).substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? 0 : begin + 1)));
      text_.erase(0, end + 1);
    }
    return watts_;
  }

 private:
  int read_ = -1, write_ = -1;
  std::string text_;
  std::optional<double> watts_;
};

class Engine {
 public:
  Engine(const StudyFolder& study, const EngineWorld& world, const EngineTask& task, StudyState state,
         StudyJournal journal)
      : study_(study), world_(world), task_(task), state_(std::move(state)), journal_(std::move(journal)) {}

  Result<EngineResult> run();

 private:
  [[nodiscard]] const StudyFile& file() const { return study_.file; }
  [[nodiscard]] const Plan& plan() const { return study_.plan; }
  [[nodiscard]] const StudyCell& cell_of(std::size_t run) const { return plan().cells[plan().runs[run].cell]; }

  Result<void> take_controls();
  Result<void> all_runs();
  Result<void> one_run(std::size_t run);
  Result<void> attempt(std::size_t run, RunEnd& end);
  Result<void> warm_up(std::size_t run);
  Result<ControlSightings> apply(const CellSetup& setup);
  void look_after_run(const CellSetup& setup, ControlSightings& seen) const;
  void cool_down();
  void wait_for_orphans();
  Result<void> skip_if_known(std::size_t run);
  [[nodiscard]] bool interval_is_narrow(std::size_t cell) const;
  [[nodiscard]] std::string over_budget(std::size_t run) const;
  [[nodiscard]] Result<void> failed_everywhere() const;
  void judge_run(const fs::path& folder, std::size_t run, const ControlSightings& seen, RunEnd& end) const;
  [[nodiscard]] std::optional<double> block_celsius(int repetition) const;
  void write_table(bool now);
  void tell(EngineEvent event) const {
    if (world_.tell) world_.tell(event);
  }
  [[nodiscard]] Nanos now() const { return world_.host.clock->now().time_since_epoch(); }

  const StudyFolder& study_;
  const EngineWorld& world_;
  const EngineTask& task_;
  StudyState state_;
  StudyJournal journal_;
  std::optional<ControlGuard> guard_;
  std::optional<int> block_;   // of the last run of this session
  std::optional<Nanos> last_end_, table_written_;
  EngineResult result_;
};

std::string log_name(const fs::path& folder) { return folder.string() + ".log"; }

// The last lines of what a command said, for an error; what the measurement says behind it is left out.
std::string tail_of(const fs::path& log) {
  const auto text = read_file(log, 64 << 20);
  if (!text) return {};
  std::vector<std::string_view> lines;
  bool ours = false;
  for (const auto line : split(trim(*text), '\n')) {
    ours = line.starts_with("ergometer: warning: ") || (ours && line.starts_with("  "));
    if (!ours && !trim(line).empty()) lines.push_back(trim(line).substr(0, 200));
  }
  std::string out;
  for (std::size_t i = lines.size() > 3 ? lines.size() - 3 : 0; i < lines.size(); ++i)
    out += fmt::format("{}{}", out.empty() ? "" : " / ", lines[i]);
  return out.empty() ? "it printed nothing" : out;
}

Result<EngineResult> Engine::run() {
  wait_for_orphans();
  if (auto taken = take_controls(); !taken) return tl::unexpected(taken.error());
  auto done = all_runs();
  if (guard_) result_.restored = guard_->restore();
  guard_.reset();
  write_table(true);
  if (!done) {
    auto error = done.error();
    for (const auto& one : result_.restored)
      if (one.outcome == RestoreOutcome::failed || one.outcome == RestoreOutcome::foreign) error.message += fmt::format("; and {}", one.text);
    if (any_failed(result_.restored)) error.hint += "; then: ergometer control restore";
    return tl::unexpected(std::move(error));
  }
  return std::move(result_);
}

void Engine::wait_for_orphans() {
  const Nanos until = now() + kOrphanPatience;
  for (const auto& run : state_.runs) {
    if (!run.process || run.end) continue;
    while (still_runs(*run.process) && now() < until && !result_.signal)
      sleep_unless_stopped(world_.signal_fd, result_.signal, 50ms);
    if (still_runs(*run.process)) ::kill(-run.process->pid, SIGKILL);
  }
}

Result<void> Engine::take_controls() {
  if (!needs_machine(file())) return {};
  auto survey = survey_settings(file(), plan().cells, world_.machine);
  if (!survey.lacking.empty()) return tl::unexpected(survey.lacking.front());
  if (survey.settings.empty()) return {};
  auto options = world_.guard;
  options.holder = fmt::format("study {}", file().name);
  auto guard = ControlGuard::acquire(world_.host, survey.settings, std::move(options));
  if (!guard) return tl::unexpected(guard.error());
  guard_.emplace(std::move(*guard));
  return {};
}

Result<void> Engine::all_runs() {
  for (std::size_t run = 0; run < plan().runs.size() && !result_.signal; ++run) {
    auto& state = state_.runs[run];
    if (state.end || state.skipped) continue;
    if (!task_.only.empty() ? !task_.only.contains(run) : !state.job.empty()) continue;
    if (auto skipped = skip_if_known(run); !skipped) return skipped;
    if (state.skipped) continue;
    if (auto why = over_budget(run); !why.empty()) {
      result_.stopped = std::move(why);
      return {};
    }
    if (auto warm = warm_up(run); !warm) return warm;
    if (result_.signal) break;
    if (auto done = one_run(run); !done) return done;
    write_table(false);
    if (result_.signal) break;
    if (auto failed = failed_everywhere(); !failed) return failed;
    if (state.end && state.end->verdict == Verdict::failed && file().runs.on_failure == OnFailure::stop) {
      result_.stopped = fmt::format("run {} failed: {}", run, fmt::join(state.end->reasons, "; "));
      return {};
    }
  }
  if (result_.signal) result_.stopped = fmt::format("signal {}", *result_.signal);
  return {};
}

Result<void> Engine::one_run(std::size_t run) {
  const int attempts = file().runs.on_failure == OnFailure::retry ? 2 : 1;
  for (int i = 0; i < attempts && !result_.signal; ++i) {
    RunEnd end;
    if (auto done = attempt(run, end); !done) return done;
    if (result_.signal) return {};  // it was cut, not run: the next start runs it again
    const bool again = end.verdict == Verdict::failed && i + 1 < attempts;
    if (again) continue;
    if (auto noted = journal_.ended(run, end); !noted) return noted;
    auto& state = state_.runs[run];
    state.end = std::move(end);
    state.process.reset();
    state.job.clear();
    ++result_.ran;
    EngineEvent event{EngineEvent::Kind::ended, run, cell_text(file(), cell_of(run).levels), &*state.end,
                      progress_of(file(), plan(), state_), Nanos{0}, {}};
    tell(std::move(event));
  }
  return {};
}

Result<void> Engine::attempt(std::size_t run, RunEnd& end) {
  const auto& levels = cell_of(run).levels;
  const auto setup = setup_of(file(), levels, world_.machine);
  if (!setup) return tl::unexpected(setup.error());
  auto command = command_of(file(), levels);
  if (!command) return tl::unexpected(command.error());
  const auto folder_name = run_folder_name(run);
  const auto folder = study_.path / folder_name;
  LaunchPlace place{world_.tool, folder, fmt::format("{} {}", file().name, cell_text(file(), levels)), task_.in_job};
  const auto words = launch_words(file(), *command, place);
  if (!words) return tl::unexpected(words.error());
  const auto text = cell_text(file(), levels);
  tell({EngineEvent::Kind::begins, run, text, nullptr, progress_of(file(), plan(), state_), Nanos{0}, {}});
  cool_down();
  if (result_.signal) return {};
  auto seen = apply(*setup);
  if (!seen) return tl::unexpected(seen.error());

  auto environment = command->environment;
  for (const auto& [name, value] : setup->environment) environment[name] = value;
  const char* path = std::getenv("PATH");
  environment.try_emplace("PATH", fmt::format("{}:{}", path ? path : "/usr/local/bin:/usr/bin:/bin", world_.program_folder));
  std::error_code ec;
  fs::remove_all(folder, ec);  // what an earlier attempt left
  fs::remove(log_name(folder), ec);
  auto program = program_on_path(words->front());
  if (!program) return fail(ErrorCode::not_found, fmt::format("there is no program {}", words->front()), "install it, or choose another executor");
  auto to_run = *words;
  to_run.front() = program->string();
  const Nanos begin = now();
  LivePower live;
  auto child = Child::start(to_run, environment, log_name(folder), world_.in_child, live.write_end());
  if (!child) return tl::unexpected(child.error());
  auto& state = state_.runs[run];
  state.process = process_id(child->pid());
  state.folder = folder_name;
  state.order = state_.started++;
  if (auto noted = journal_.started(run, *state.order, folder_name, state.process.value_or(ProcessId{child->pid(), 0, ""}));
      !noted)
    return noted;
  const auto ended = child->wait(world_.signal_fd, result_.signal, file().runs.time_out, kLookEvery, [&] {
    if (guard_) seen->under_load = guard_->observe();
    tell({EngineEvent::Kind::works, run, text, nullptr, {}, now() - begin, live.now()});
  });
  last_end_ = now();
  if (result_.signal) return {};
  look_after_run(*setup, *seen);
  for (const auto& one : seen->under_load.empty() ? seen->before : seen->under_load)
    if (one.effective) end.controls.push_back({one.name, to_text(one.requested), to_text(*one.effective)});
  end.exit_code = ended.exit_code;
  end.timed_out = ended.timed_out;
  judge_run(folder, run, *seen, end);
  end.seconds = seconds(now() - begin);
  return {};
}

void Engine::judge_run(const fs::path& folder, std::size_t run, const ControlSightings& seen, RunEnd& end) const {
  std::vector<MeasuredRun> nodes;
  std::vector<std::string> troubles;
  std::vector<fs::path> folders;
  std::error_code ec;
  if (fs::exists(folder / "run.json", ec))
    folders.push_back(folder);
  else
    for (const auto& name : list_dir(folder))
      if (fs::exists(folder / name / "run.json", ec)) folders.push_back(folder / name);
  for (const auto& one : folders) {
    auto measured = world_.load(one);
    if (measured)
      nodes.push_back(std::move(*measured));
    else
      troubles.push_back(measured.error().message);
  }
  if (!nodes.empty()) {
    end.metrics = metrics_of_nodes(nodes);
    if (const auto found = end.metrics.find("energy_j"); found != end.metrics.end()) end.energy_j = found->second.value;
  }
  auto judgement = judge(file().validity, nodes, seen, block_celsius(plan().runs[run].repetition));
  end.verdict = judgement.verdict;
  end.reasons = std::move(judgement.reasons);
  end.start_celsius = judgement.start_celsius;
  if (nodes.empty()) {
    end.verdict = Verdict::failed;
    troubles.push_back("nothing was recorded");
  }
  if (end.timed_out)
    troubles.insert(troubles.begin(), fmt::format("it did not end within {:g} s", seconds(*file().runs.time_out)));
  else if (end.exit_code != 0)
    troubles.insert(troubles.begin(), fmt::format("exit code {}: {}", end.exit_code, tail_of(log_name(folder))));
  if (end.timed_out || end.exit_code != 0) end.verdict = Verdict::failed;
  end.reasons.insert(end.reasons.begin(), troubles.begin(), troubles.end());
}

// Runs that bring the machine to its working temperature and are forgotten.
Result<void> Engine::warm_up(std::size_t run) {
  const int block = plan().runs[run].repetition;
  if (block_ == block) return {};
  block_ = block;
  const auto& levels = cell_of(run).levels;
  for (int i = 0; i < file().runs.warm_up && !result_.signal; ++i) {
    const auto setup = setup_of(file(), levels, world_.machine);
    if (!setup) return tl::unexpected(setup.error());
    auto command = command_of(file(), levels);
    if (!command) return tl::unexpected(command.error());
    if (auto applied = apply(*setup); !applied) return tl::unexpected(applied.error());
    const auto folder = study_.path / "runs" / "warm-up";
    std::error_code ec;
    fs::remove_all(folder, ec);
    const auto words = launch_words(file(), *command, {world_.tool, folder, "warm-up", task_.in_job});
    if (!words) return tl::unexpected(words.error());
    auto environment = command->environment;
    for (const auto& [name, value] : setup->environment) environment[name] = value;
    auto to_run = *words;
    if (const auto program = program_on_path(to_run.front())) to_run.front() = program->string();
    LivePower nobody_looks;
    auto child = Child::start(to_run, environment, log_name(folder), world_.in_child, nobody_looks.write_end());
    if (!child) return tl::unexpected(child.error());
    static_cast<void>(child->wait(world_.signal_fd, result_.signal, file().runs.time_out, Nanos{0}, {}));
  }
  return {};
}

Result<ControlSightings> Engine::apply(const CellSetup& setup) {
  ControlSightings seen;
  if (!guard_) return seen;
  auto applied = guard_->apply(setup.settings);
  if (!applied) return tl::unexpected(applied.error());
  seen.before = std::move(*applied);
  return seen;
}

// A service or a colleague may have set another value while the command worked.
void Engine::look_after_run(const CellSetup& setup, ControlSightings& seen) const {
  for (const auto& setting : setup.settings) {
    const auto& info = setting.control->describe();
    if (!info.readable) continue;
    const auto value = setting.control->get();
    if (value && !same_value(info, *value, setting.value))
      seen.changed.push_back(fmt::format("{} is {} after the run: somebody else changed it from {}", info.name,
                                         to_text(*value), to_text(setting.value)));
  }
}

void Engine::cool_down() {
  const auto& cool = file().runs.cool_down;
  if (!last_end_) return;
  const Nanos begin = now();
  const auto hot = [&] {
    if (!cool.below_celsius || !world_.hottest_gpu || now() - begin >= cool.at_most) return false;
    const auto degrees = world_.hottest_gpu();
    return degrees && *degrees > *cool.below_celsius;
  };
  while (!result_.signal && (now() - *last_end_ < cool.time || hot())) {
    tell({EngineEvent::Kind::cools, 0, {}, nullptr, {}, now() - *last_end_, {}});
    const Nanos left = cool.time - (now() - *last_end_);
    sleep_unless_stopped(world_.signal_fd, result_.signal, left > Nanos{0} ? std::min<Nanos>(left, 1s) : Nanos(500ms));
  }
}

bool Engine::interval_is_narrow(std::size_t cell) const {
  const auto& until = *file().runs.until;
  std::vector<double> values;
  for (std::size_t i = 0; i < plan().runs.size(); ++i) {
    if (plan().runs[i].cell != cell || !state_.runs[i].end || state_.runs[i].end->verdict != Verdict::valid) continue;
    const auto& metrics = state_.runs[i].end->metrics;
    if (const auto found = metrics.find(until.metric); found != metrics.end()) values.push_back(found->second.value);
  }
  const auto mean = mean_with_t(values);
  if (!mean || !mean->interval || mean->value == 0) return false;
  return (mean->interval->high - mean->interval->low) / 2 <= until.interval * std::abs(mean->value);
}

// Leaves out the rest of a cell whose metric is known well enough.
Result<void> Engine::skip_if_known(std::size_t run) {
  const auto& planned = plan().runs[run];
  if (!file().runs.until || planned.repetition < std::max(2, file().runs.repetitions)) return {};
  if (!interval_is_narrow(planned.cell)) return {};
  std::vector<std::size_t> rest;
  for (std::size_t i = run; i < plan().runs.size(); ++i)
    if (plan().runs[i].cell == planned.cell && !state_.runs[i].end) rest.push_back(i);
  if (auto noted = journal_.skipped(rest); !noted) return noted;
  for (const auto i : rest) state_.runs[i].skipped = true;
  return {};
}

std::string Engine::over_budget(std::size_t run) const {
  const auto& rules = file().runs;
  if (!rules.time_budget && !rules.energy_budget_j) return {};
  const auto progress = progress_of(file(), plan(), state_);
  double expected_s = 0, expected_j = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < plan().runs.size(); ++i)
    if (const auto& end = state_.runs[i].end; end && plan().runs[i].cell == plan().runs[run].cell) {
      expected_s += end->seconds;
      expected_j += end->energy_j.value_or(0);
      ++count;
    }
  if (count > 0) {
    expected_s /= static_cast<double>(count);
    expected_j /= static_cast<double>(count);
  }
  if (rules.time_budget && progress.spent_s + expected_s > seconds(*rules.time_budget))
    return fmt::format("the time budget of {:g} s is spent: {:.4g} s so far", seconds(*rules.time_budget), progress.spent_s);
  if (rules.energy_budget_j && progress.energy_j && *progress.energy_j + expected_j > *rules.energy_budget_j)
    return fmt::format("the energy budget of {:g} J is spent: {:.4g} J so far", *rules.energy_budget_j, *progress.energy_j);
  return {};
}

Result<void> Engine::failed_everywhere() const {
  std::set<std::size_t> failed;
  const RunEnd* last = nullptr;
  for (std::size_t i = 0; i < plan().runs.size(); ++i) {
    const auto& end = state_.runs[i].end;
    if (!end) continue;
    if (end->verdict != Verdict::failed) return {};
    failed.insert(plan().runs[i].cell);
    last = &*end;
  }
  if (failed.size() < std::min(kFailuresToStop, plan().cells.size()) || failed.empty()) return {};
  return fail(ErrorCode::unavailable,
              fmt::format("the command failed in every one of the first {} cells: {}", failed.size(), last->reasons.front()),
              fmt::format("its output is in {}/runs/*.log; put it right and go on with: ergometer study run --retry {}",
                          study_.path.string(), study_.path.string()));
}

std::optional<double> Engine::block_celsius(int repetition) const {
  std::optional<int> first;
  std::optional<double> celsius;
  for (std::size_t i = 0; i < plan().runs.size(); ++i) {
    const auto& run = state_.runs[i];
    if (plan().runs[i].repetition != repetition || !run.end || !run.end->start_celsius || !run.order) continue;
    if (first && *run.order > *first) continue;
    first = run.order;
    celsius = run.end->start_celsius;
  }
  return celsius;
}

void Engine::write_table(bool at_once) {
  if (task_.in_job) return;  // several jobs would write it at once; whoever collects does
  if (!at_once && table_written_ && now() - *table_written_ < kTableEvery) return;
  table_written_ = now();
  // Only a cache of the journal: if it cannot be written, the next look makes it again.
  static_cast<void>(write_study_table(study_.path, table_of(file(), plan(), state_)));
}

}  // namespace

Result<EngineResult> run_study(const StudyFolder& study, const EngineWorld& world, const EngineTask& task) {
  auto state = read_study_state(study.path, study.plan);
  if (!state) return tl::unexpected(state.error());
  if (task.again)
    for (auto& run : state->runs)
      if (run.end && run.end->verdict != Verdict::valid) run.end.reset();
  auto journal = StudyJournal::open(study.path, task.journal);
  if (!journal) return tl::unexpected(journal.error());
  return Engine(study, world, task, std::move(*state), std::move(*journal)).run();
}

}  // namespace ergometer
