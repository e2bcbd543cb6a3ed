// `ergometer study run`: makes a study's folder, or opens it again, and runs what has not run yet.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "control_places.hpp"
#include "device/registry.hpp"
#include "discover_options.hpp"
#include "library/load_run.hpp"
#include "report/table.hpp"
#include "report/units.hpp"
#include "run_live.hpp"
#include "store/study_table_json.hpp"
#include "study.hpp"
#include "study/batch.hpp"
#include "study/child.hpp"
#include "study/launch.hpp"
#include "study_world.hpp"

namespace ergometer::cli {
namespace {
namespace fs = std::filesystem;

constexpr int kSomeFailed = 1;

Result<MeasuredRun> load_measured(const fs::path& dir) {
  auto loaded = load_run(dir);
  if (!loaded) return tl::unexpected(loaded.error());
  auto readings = read_readings(dir);
  if (!readings) return tl::unexpected(readings.error());
  return MeasuredRun{std::move(loaded->manifest), std::move(loaded->summary), std::move(*readings)};
}

// GPU temperatures now, without a run.
class Thermometer {
 public:
  explicit Thermometer(const Context& context) {
    auto options = default_discover_options(context);
    options.only = {"nvml"};
    if (auto found = discover(context.host(), options))
      for (auto& sensor : found->sensors)
        for (std::size_t c = 0; c < sensor->info().channels.size(); ++c)
          if (sensor->info().channels[c].column == "temperature_celsius") probes_.push_back({sensor, c});
  }
  [[nodiscard]] std::optional<double> hottest() const {
    std::optional<double> hottest;
    for (const auto& probe : probes_) {
      Readings readings;
      if (!probe.sensor->read(readings)) continue;
      for (const auto& row : readings.rows)
        if (const auto& value = row.values[probe.channel]) hottest = std::max(hottest.value_or(*value), *value);
    }
    return hottest;
  }

 private:
  struct Probe {
    std::shared_ptr<Sensor> sensor;
    std::size_t channel;
  };
  std::vector<Probe> probes_;
};

// --- what is shown --------------------------------------------------------------------------------------------------

class ProgressLine {
 public:
  ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() { erase(); }

  void take(const EngineEvent& event) {
    if (event.kind == EngineEvent::Kind::begins) {
      progress_ = event.progress;
      cell_ = event.cell;
    } else if (event.kind == EngineEvent::Kind::ended) {
      erase();
      tell_end(event);
      return;
    }
    draw(event);
  }

 private:
  void erase() {
    if (drawn_) fmt::print(stderr, "\r\033[K");
    drawn_ = false;
  }

  static std::string left_text(const StudyProgress& progress) {
    return progress.left_s ? ergometer::duration_text(*progress.left_s) + " left" : "time left unknown";
  }
  static std::string energy_text_of(const StudyProgress& progress) {
    if (!progress.energy_j) return "no energy yet";
    return fmt::format("{}{} so far", progress.energy_modelled ? "~" : "", with_unit(*progress.energy_j, "J"));
  }

  void tell_end(const EngineEvent& event) {
    const auto& end = *event.end;
    const auto done = event.progress.planned - event.progress.left;
    std::string line = fmt::format("[{}/{}] {}: {}", done, event.progress.planned, event.cell, to_word(end.verdict));
    const auto add = [&](const char* metric, const char* unit, const char* mark) {
      if (const auto found = end.metrics.find(metric); found != end.metrics.end())
        line += fmt::format(", {}{}", mark, with_unit(found->second.value, unit));
    };
    add("duration_s", "s", "");
    const bool measured = end.metrics.contains("energy_j");
    add(measured ? "energy_j" : "modelled_energy_j", "J", measured ? "" : "~");
    if (event.progress.left > 0) line += fmt::format("; {}, {}", left_text(event.progress), energy_text_of(event.progress));
    fmt::print(stderr, "{}\n", printable(line));
    if (end.verdict != ergometer::Verdict::valid)
      for (const auto& reason : end.reasons) fmt::print(stderr, "    {}\n", printable(reason));
  }

  void draw(const EngineEvent& event) {
    if (!terminal_) return;
    const auto done = progress_.planned - progress_.left;
    std::string line = fmt::format("run {} of {}: {}", done + 1, progress_.planned, cell_);
    line += event.kind == EngineEvent::Kind::cools
                ? fmt::format(", cooling down for {}", ergometer::duration_text(seconds(event.elapsed)))
                : fmt::format(", {}{}", ergometer::duration_text(seconds(event.elapsed)),
                              event.power_w ? fmt::format(", {}", with_unit(*event.power_w, "W")) : "");
    line += fmt::format("; {}, {}", left_text(progress_), energy_text_of(progress_));
    fmt::print(stderr, "\r\033[K{}", shortened(printable(line), static_cast<std::size_t>(std::max(terminal_width() - 1, 20))));
    drawn_ = true;
  }

  bool terminal_, drawn_ = false;
  StudyProgress progress_;
  std::string cell_;
};

bool tell_restored_controls(const std::vector<Restored>& all) {
  for (const auto& one : all) {
    if (one.outcome != RestoreOutcome::failed && one.outcome != RestoreOutcome::foreign) continue;
    fmt::print(stderr, "ergometer: {}\n", one.text);
    if (!one.hint.empty()) fmt::print(stderr, "  {}\n", one.hint);
  }
  if (any_failed(all)) fmt::print(stderr, "  try again with: ergometer control restore\n");
  return !any_failed(all);
}

int end_of_study(const StudyFolder& study, const EngineResult& result) {
  const bool restored = tell_restored_controls(result.restored);
  const auto state = read_study_state(study.path, study.plan);
  if (!state) return study_error(state.error());
  const auto progress = progress_of(study.file, study.plan, *state);
  if (const auto written = write_study_table(study.path, table_of(study.file, study.plan, *state)); !written)
    report_error(written.error());
  fmt::print(stderr, "study {}: {} of {} runs: {} valid, {} invalid, {} failed{}\n", study.file.name,
             progress.planned - progress.left, progress.planned, progress.valid, progress.invalid, progress.failed,
             progress.submitted > 0 ? fmt::format(", {} given to batch jobs", progress.submitted) : "");
  if (!result.stopped.empty()) fmt::print(stderr, "  stopped: {}\n", printable(result.stopped));
  std::error_code ec;
  const auto near = fs::proximate(study.path, ec);
  const auto folder = ec || near.string().starts_with("..") ? study.path.string() : near.string();
  if (progress.left > 0) fmt::print(stderr, "  go on with: ergometer study run {}\n", folder);
  fmt::print(stderr, "  see it with: ergometer study show {}\n", folder);
  if (result.signal) return 128 + *result.signal;
  if (!restored) return kCannotMeasure;
  return progress.failed > 0 ? kSomeFailed : 0;
}

Result<StudyFolder> make_or_open(const Context& context, const StudyOptions& options, const StudyTarget& target) {
  if (target.exists) {
    auto study = open_study(target.folder);
    if (study && target.source)
      if (auto same = check_unchanged(*study, *target.source); !same) return tl::unexpected(same.error());
    return study;
  }
  auto planned = plan_study(context, options, target);
  if (!planned) return tl::unexpected(planned.error());
  // What is missing is said before anything is written.
  const auto missing = missing_programs(planned->file, planned->plan.cells, [](const std::string& name) {
    std::error_code ec;
    const auto beside = fs::read_symlink("/proc/self/exe", ec).parent_path() / name;
    return find_command(name).has_value() || (name.find('/') == std::string::npos && fs::exists(beside, ec));
  });
  if (!missing.empty()) return tl::unexpected(missing.front());
  auto source = *target.source;
  return create_study(target.folder, source, std::move(planned->plan), std::move(planned->file));
}

}  // namespace

std::vector<std::string> tool_words(const Context& context) {
  std::error_code ec;
  // Not /proc/self/exe: a launcher starts these words from a program of its own, perhaps on another node.
  std::vector<std::string> words{fs::read_symlink("/proc/self/exe", ec).string()};
  if (!context.host_root.empty())
    words.insert(words.end(), {"--host-root", fs::absolute(context.host_root, ec).string()});
  words.insert(words.end(), {"--nvml", lasting_path(context.nvml_path)});
  return words;
}

EngineWorld engine_world(const Context& context, const StudyFile& file, const std::string& site_command,
                         const Signals& signals) {
  EngineWorld world;
  world.host = context.host();
  world.machine = find_machine(context, file, site_command);
  world.guard = guard_options(context, site_command, "");
  world.tool = tool_words(context);
  world.program_folder = fs::path(world.tool.front()).parent_path().string();
  world.signal_fd = signals.fd();
  world.in_child = [&signals] { signals.restore_inherited(); };
  world.load = load_measured;
  if (file.runs.cool_down.below_celsius) {
    const auto thermometer = std::make_shared<Thermometer>(context);
    world.hottest_gpu = [thermometer] { return thermometer->hottest(); };
  }
  return world;
}

int run_target(const Context& context, const StudyOptions& options, const StudyTarget& target) {
  // From here on no signal ends us before what was set is restored.
  const Signals signals;
  const auto study = make_or_open(context, options, target);
  if (!study) return study_error(study.error());
  const auto lock = lock_study(*study);
  if (!lock) return study_error(lock.error());
  auto world = engine_world(context, study->file, options.site_command, signals);
  if (study->file.where.kind == ExecutorKind::sbatch) {
    const auto result = submit_study(*study, world, options.retry);
    return result ? end_of_study(*study, *result) : study_error(result.error());
  }
  const auto node = lock_node(world.guard.places, *study);
  if (!node) return study_error(node.error());
  ProgressLine line;
  world.tell = [&line](const EngineEvent& event) { line.take(event); };
  EngineTask task;
  task.again = options.retry;
  const auto result = run_study(*study, world, task);
  return result ? end_of_study(*study, *result) : study_error(result.error());
}

int study_run(const Context& context, const StudyOptions& options) {
  const auto target = study_target(options);
  if (!target) return study_error(target.error());
  return run_target(context, options, *target);
}

int study_job(const Context& context, const StudyOptions& options, const std::string& runs) {
  const Signals signals;
  const auto study = open_study(options.study);
  if (!study) return study_error(study.error());
  auto task = job_task(runs, current_environment());
  if (!task) return study_error(task.error());
  auto world = engine_world(context, study->file, options.site_command, signals);
  // The batch system may have put another study's job on this node: it has time to wait.
  auto node = lock_node(world.guard.places, *study);
  std::optional<int> stop;
  while (!node && node.error().code == ErrorCode::exists && !stop) {
    sleep_unless_stopped(signals.fd(), stop, std::chrono::seconds(1));
    node = lock_node(world.guard.places, *study);
  }
  if (!node) return study_error(node.error());
  ProgressLine line;
  world.tell = [&line](const EngineEvent& event) { line.take(event); };
  const auto result = run_study(*study, world, *task);
  if (!result) return study_error(result.error());
  if (result->signal) return 128 + *result->signal;
  return tell_restored_controls(result->restored) ? 0 : kCannotMeasure;
}

}  // namespace ergometer::cli
