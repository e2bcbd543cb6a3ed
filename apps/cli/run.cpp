// `ergometer run -- COMMAND`: measures a command and its whole process tree, and changes nothing about it.
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "discover_options.hpp"
#include "library/load_run.hpp"
#include "measure/session.hpp"
#include "report/json.hpp"
#include "report/text.hpp"
#include "run_epochs.hpp"
#include "run_folder.hpp"
#include "run_live.hpp"
#include "run_output.hpp"
#include "run_process.hpp"

namespace ergometer::cli {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr Nanos kRedraw = 500ms, kTellPower = 1s;

struct RunOptions {
  std::string output, name, store = "runs";
  std::string interval, sensors, require, epoch_regex, epoch_at = "start", idle_before = "0s", idle_after = "0s";
  std::optional<double> cpu_tdp_w;
  bool quiet = false, json = false;
  int live_fd = -1;  // of a study that started us: watts of now, a line a second
};

std::vector<std::string> list_of(const std::string& text) {
  std::vector<std::string> words;
  for (const auto part : split(text, ','))
    if (!trim(part).empty()) words.emplace_back(trim(part));
  return words;
}

// --- the run
// ----------------------------------------------------------------------------------------------------------

// What stands between a command that is ready and its summary.
class Run {
 public:
  Run(const RunOptions& options, std::unique_ptr<Session> session, Command& command, Signals& signals,
      EpochMarks* epochs, std::vector<Passthrough>& streams)
      : options_(options),
        session_(std::move(session)),
        command_(command),
        signals_(signals),
        epochs_(epochs),
        streams_(streams),
        live_(!options.quiet && !options.json) {}

  // Idle phases and the command; returns the exit code. Afterwards the session has stopped.
  int measure() {
    if (const auto signal = idle(options_.idle_before, true)) {
      session_->event("session", "note", fmt::format("ended by signal {} before the command began", *signal));
      stop();
      return 128 + *signal;
    }
    const int code = run_command();
    if (code >= 0) idle(options_.idle_after, false);
    live_.erase();
    stop();
    return code;
  }

  [[nodiscard]] Session& session() { return *session_; }

 private:
  std::optional<int> idle(const std::string& length, bool before) {
    const Nanos time = parse_duration(length).value_or(Nanos{0});
    if (time == Nanos{0}) return std::nullopt;
    before ? session_->idle_before_begins() : session_->idle_after_begins();
    const auto signal = sleep_or_signal(signals_, time, live_period(), [this] { live_.draw(session_->live()); });
    before ? session_->idle_before_ends() : session_->idle_after_ends();
    return signal;
  }

  int run_command() {
    SystemClock clock;
    if (epochs_) {
      if (auto begun = epochs_->begin(session_->run_dir(), command_.pid(), clock.now()); !begun)
        session_->warn({"output", begun.error().message, begun.error().hint});
      for (auto& stream : streams_)
        stream.start([this](std::string_view line, MonoTime t) { epochs_->line(line, t); },
                     [this](std::string_view bytes) { live_.make_room(bytes); });
      command_.on_resize = [this] {
        for (const auto& stream : streams_) stream.resize();
      };
    }
    session_->command_begins();
    if (auto begun = command_.begin(); !begun) {
      session_->command_ended(kNotExecutable, std::nullopt);
      return report_error(begun.error(), kNotExecutable);
    }
    const CommandEnd end = command_.wait(signals_, live_period(), [this] { show_live(); });
    session_->command_ended(end.exit_code, end.signal);
    const MonoTime ended = clock.now();
    command_.end_tree(signals_);
    for (auto& stream : streams_) stream.finish();
    if (epochs_) epochs_->end(ended);
    return end.exit_code;
  }

  void stop() {
    if (const auto stopped = session_->stop(); !stopped) report_error(stopped.error());
  }

  [[nodiscard]] Nanos live_period() const {
    if (live_.wanted()) return kRedraw;
    return options_.live_fd >= 0 ? kTellPower : Nanos{0};
  }

  void show_live() {
    const auto view = session_->live();
    live_.draw(view);
    if (options_.live_fd < 0) return;
    std::optional<double> watts;
    for (const auto& domain : view.domains)
      if (domain.power_w) watts = watts.value_or(0) + *domain.power_w;
    if (!watts) return;
    const auto line = format_double(*watts) + "\n";
    // Nobody reads it any more: the next second tells no news either.
    if (::write(options_.live_fd, line.data(), line.size()) < 0) return;
  }

  const RunOptions& options_;
  std::unique_ptr<Session> session_;
  Command& command_;
  Signals& signals_;
  EpochMarks* epochs_;
  std::vector<Passthrough>& streams_;
  LiveLine live_;
};

// Derives the summary from what was recorded, writes it beside it and shows it. Trouble here is told, and changes
// nothing about the command's exit code.
void report_run(const fs::path& dir, const RunOptions& options) {
  const auto loaded = load_run(dir);
  if (!loaded) {
    report_error(loaded.error());
    return;
  }
  if (const auto written = write_summary(dir, loaded->summary); !written) report_error(written.error());
  if (options.quiet) {
    for (const auto& warning : loaded->summary.warnings)
      report_error(Error{ErrorCode::internal, "warning: " + warning.message, warning.remedy});
    return;
  }
  if (options.json) {
    fmt::print(stderr, "{}", summary_json(loaded->summary));
    return;
  }
  TextOptions text;
  text.width = terminal_width();
  text.colour = ::isatty(STDERR_FILENO) == 1 && !std::getenv("NO_COLOR");
  fmt::print(stderr, "{}", render_text(loaded->manifest, loaded->summary, text));
  std::error_code ec;
  const auto near = fs::proximate(dir, ec);
  fmt::print(stderr, "run: {}\n", ec || near.string().starts_with("..") ? dir.string() : near.string());
}

SessionOptions session_options(const RunOptions& options, const Context& context, const fs::path& dir,
                               const std::string& name) {
  SessionOptions session;
  session.run_dir = dir;
  session.name = name;
  session.command = context.measured_command;
  std::error_code ec;
  session.directory = fs::current_path(ec).string();
  session.discover = default_discover_options(context);
  session.discover.interval = parse_duration(options.interval);
  session.discover.only = list_of(options.sensors);
  session.discover.cpu_tdp_w = options.cpu_tdp_w;
  session.require = list_of(options.require);
  session.late_devices = parse_duration(options.idle_before).value_or(Nanos{0}) == Nanos{0};
  return session;
}

Result<std::vector<Passthrough>> open_streams(bool wanted) {
  std::vector<Passthrough> streams;
  if (!wanted) return streams;
  for (const int target : {STDOUT_FILENO, STDERR_FILENO}) {
    auto stream = Passthrough::create(target);
    if (!stream) return tl::unexpected(stream.error());
    streams.push_back(std::move(*stream));
  }
  return streams;
}

// All that must be right before anything is measured, then the run itself.
int run(const RunOptions& options, const Context& context) {
  const auto& argv = context.measured_command;
  if (argv.empty())
    return report_error(Error{ErrorCode::invalid_argument, "no command to measure",
                              "give it after two dashes: ergometer run [OPTIONS] -- COMMAND ..."});
  std::unique_ptr<EpochMarks> epochs;
  if (!options.epoch_regex.empty()) {
    auto created = EpochMarks::create(options.epoch_regex, options.epoch_at == "end" ? EpochAt::end : EpochAt::start);
    if (!created) return report_error(created.error());
    epochs = std::move(*created);
  }
  if (options.live_fd >= 0) ::fcntl(options.live_fd, F_SETFD, FD_CLOEXEC);  // not for the command
  const auto file = find_command(argv.front());
  if (!file) return report_error(file.error(), file.error().code == ErrorCode::not_found ? kNotFound : kNotExecutable);
  const std::string name = options.name.empty() ? fs::path(argv.front()).filename().string() : options.name;
  const auto folder = run_folder(options.output, options.store, name);
  if (!folder) return report_error(folder.error(), kCannotMeasure);

  // The process is made first, while this one has a single thread and little memory to copy.
  Signals signals;
  auto streams = open_streams(epochs != nullptr);
  if (!streams) return report_error(streams.error(), kCannotMeasure);
  Command::Streams ends;
  if (epochs) ends = {(*streams)[0].command_end(), (*streams)[1].command_end()};
  auto command = Command::prepare(*file, argv, {{"ERGOMETER_RUN", folder->path.string()}}, signals, ends);
  if (!command) return report_error(command.error(), kCannotMeasure);

  // Many small threads: few heaps for all are smaller than one for each; with a single one they wait for each other.
  ::mallopt(M_ARENA_MAX, 4);
  auto session = Session::start(context.host(), session_options(options, context, folder->path, name));
  if (!session) {
    if (folder->created) ::rmdir(folder->path.c_str());  // ours and empty
    const bool usage = session.error().code == ErrorCode::invalid_argument;
    return report_error(session.error(), usage ? kUsage : kCannotMeasure);
  }
  Run measured(options, std::move(*session), *command, signals, epochs.get(), *streams);
  const int code = measured.measure();
  report_run(folder->path, options);
  std::fflush(nullptr);
  // A driver call that never returns would also hang the library's own clean-up.
  if (measured.session().left_thread_behind()) ::_exit(code);
  return code;
}

std::string check_duration(const std::string& text) {
  return parse_duration(text) ? "" : "\"" + text + "\" is no duration: write it as 100ms, 5s or 2min";
}

std::string check_interval(const std::string& text) {
  const auto interval = parse_duration(text);
  if (!interval) return check_duration(text);
  return *interval >= 1ms && *interval <= 1h ? "" : "an interval must be from 1ms to 1h, not " + text;
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand("run", "Measure a command and everything it starts");
  auto options = std::make_shared<RunOptions>();
  const CLI::Validator duration(check_duration, ""), interval(check_interval, "");
  sub->add_option("-o,--output", options->output, "Folder of the run (default: STORE/NAME-TIME)")->type_name("RUN");
  sub->add_option("--store", options->store, "Folder for new runs")->type_name("DIR")->capture_default_str();
  sub->add_option("--name", options->name, "Name of the run (default: the command's)")->type_name("NAME");
  sub->add_option("--interval", options->interval,
                  "Time between readings of quick sensors (default: 100ms; 200ms for GPUs whose driver samples power)")
      ->type_name("TIME")
      ->check(interval);
  sub->add_option("--sensors", options->sensors, "Use only these interfaces, as in nvml,rapl")->type_name("LIST");
  sub->add_option("--require", options->require, "Refuse to start without these, as in nvml,gpu/0")->type_name("LIST");
  sub->add_option("--epoch-regex", options->epoch_regex,
                  "A printed line that matches marks an epoch; group 1 is its number")
      ->type_name("RE");
  sub->add_option("--epoch-at", options->epoch_at, "Whether such a line stands at an epoch's start or end")
      ->type_name("start|end")
      ->check(CLI::IsMember({"start", "end"}))
      ->capture_default_str();
  sub->add_option("--idle-before", options->idle_before, "Measure idle power this long before the command")
      ->type_name("TIME")
      ->check(duration);
  sub->add_option("--idle-after", options->idle_after, "... and after it")->type_name("TIME")->check(duration);
  sub->add_option("--cpu-tdp", options->cpu_tdp_w, "Power of the CPU at full load, for a model where no sensor is")
      ->type_name("WATTS")
      ->check(CLI::Range(1.0, 100000.0));
  sub->add_option("--live-fd", options->live_fd)->group("");  // of study run
  sub->add_flag("--quiet", options->quiet, "Show only errors and warnings");
  sub->add_flag("--json", options->json, "Show the summary as JSON, on standard error");
  sub->footer(
      "The command stands after two dashes. Its output, input, signals and exit code stay as they are.\n\n"
      "Examples:\n"
      "  ergometer run -- python3 train.py --epochs 3\n"
      "  ergometer run -o runs/base --idle-before 10s --require gpu -- ./train\n"
      "  ergometer run --epoch-regex 'Epoch ([0-9]+)' -- python3 train.py\n");
  sub->callback([options, &context] { context.exit_code = run(*options, context); });
}

}  // namespace ergometer::cli
