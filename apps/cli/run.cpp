// `ergometer run -- COMMAND`: measures a command and its whole process tree, and changes nothing about it.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <sys/resource.h>
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
#include "run_command.hpp"
#include "run_epochs.hpp"
#include "run_folder.hpp"
#include "run_live.hpp"
#include "run_process.hpp"
#include "run_ranks.hpp"

namespace ergometer::cli {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr Nanos kRedraw = 500ms, kTellPower = 1s, kRankTick = 200ms;
constexpr Nanos kOtherNodes = 3s;  // for their parts before the summary is told

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

// User and system time of everything that this process has waited for.
double children_cpu_s() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  const auto s = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return s(used.ru_utime) + s(used.ru_stime);
}

// --- the run
// ----------------------------------------------------------------------------------------------------------

// What stands between a command that is ready and its summary. `part` is null for a run of this process alone.
class Run {
 public:
  Run(const RunOptions& options, Session& session, RunCommand& command, Signals& signals, NodePart* part)
      : options_(options),
        session_(session),
        command_(command),
        signals_(signals),
        part_(part),
        live_(!options.quiet && !options.json) {}

  // Idle phases and the command; returns the exit code. Afterwards the session has stopped.
  int measure() {
    if (const auto signal = idle(options_.idle_before, true)) {
      session_.event("session", "note", fmt::format("ended by signal {} before the command began", *signal));
      if (part_)
        part_->refuse({ErrorCode::unavailable, fmt::format("ended by signal {} before it began", *signal), ""});
      stop();
      return 128 + *signal;
    }
    const int code = run_command();
    if (code >= 0) idle(options_.idle_after, false);
    live_.erase();
    stop();
    return code;
  }

 private:
  std::optional<int> idle(const std::string& length, bool before) {
    const Nanos time = parse_duration(length).value_or(Nanos{0});
    if (time == Nanos{0}) return std::nullopt;
    before ? session_.idle_before_begins() : session_.idle_after_begins();
    const auto signal = sleep_or_signal(signals_, time, live_period(), [this] { live_.draw(session_.live()); });
    before ? session_.idle_before_ends() : session_.idle_after_ends();
    return signal;
  }

  int run_command() {
    if (part_) part_->open();
    session_.command_begins();
    if (part_) part_->command_begins();
    if (auto begun = command_.begin([this](Warning warning) { session_.warn(std::move(warning)); }, live_); !begun) {
      ended({kNotExecutable, std::nullopt}, SystemClock().now());
      return report_error(begun.error(), kNotExecutable);
    }
    const auto end = command_.wait(tick_period(), [this] { tick(); });
    ended(end.how, end.at);
    return end.how.exit_code;
  }

  void ended(const CommandEnd& how, MonoTime at) {
    if (!part_) return session_.command_ended(how.exit_code, how.signal, std::nullopt, at);
    part_->command_ended(how.exit_code, how.signal, at);
    part_->wait_for_others(signals_, live_period(), [this] { show_live(); });
    part_->finish();
  }

  void stop() {
    if (const auto stopped = session_.stop(); !stopped) report_error(stopped.error());
  }

  [[nodiscard]] Nanos live_period() const {
    if (live_.wanted()) return kRedraw;
    return options_.live_fd >= 0 ? kTellPower : Nanos{0};
  }

  [[nodiscard]] Nanos tick_period() const { return part_ ? kRankTick : live_period(); }

  void tick() {
    if (part_) part_->look();
    const MonoTime now = SystemClock().now();
    if (live_period() == Nanos{0} || now < next_live_) return;
    next_live_ = now + live_period();
    show_live();
  }

  void show_live() {
    const auto view = session_.live();
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
  Session& session_;
  RunCommand& command_;
  Signals& signals_;
  NodePart* part_;
  LiveLine live_;
  MonoTime next_live_{};
};

// Derives the summary from what was recorded, writes it beside it and shows it. Trouble here is told, and changes
// nothing about the command's exit code.
void report_run(const fs::path& dir, const RunOptions& options, bool is_over) {
  const auto loaded = load_run(dir);
  if (!loaded) {
    report_error(loaded.error());
    return;
  }
  // A run that goes on elsewhere has no summary to keep.
  if (is_over)
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
  if (session.discover.environment.contains("SLURM_JOB_ID"))
    session.place = place_of(nullptr, this_machine(context.host_root),
                             find_whereabouts(context.host(), session.discover.environment));
  session.late_devices = parse_duration(options.idle_before).value_or(Nanos{0}) == Nanos{0};
  return session;
}

// What is right about the options and the command, so that it can be run.
struct Prepared {
  std::filesystem::path file;
  std::string name;
  std::unique_ptr<EpochMarks> epochs;
};

// An ordinary run: this process measures its own command, and the folder is its alone.
int run_alone(const RunOptions& options, const Context& context, Prepared prepared, Signals& signals) {
  const auto folder = run_folder(options.output, options.store, prepared.name);
  if (!folder) return report_error(folder.error(), kCannotMeasure);
  // The process is made first, while this one has a single thread and little memory to copy.
  auto command =
      RunCommand::prepare(prepared.file, context.measured_command, folder->path, std::move(prepared.epochs), signals);
  if (!command) return report_error(command.error(), kCannotMeasure);
  // Many small threads: few heaps for all are smaller than one for each; with a single one they wait for each other.
  ::mallopt(M_ARENA_MAX, 4);
  auto session = Session::start(context.host(), session_options(options, context, folder->path, prepared.name));
  if (!session) {
    if (folder->created) ::rmdir(folder->path.c_str());  // ours and empty
    const bool usage = session.error().code == ErrorCode::invalid_argument;
    return report_error(session.error(), usage ? kUsage : kCannotMeasure);
  }
  const int code = Run(options, **session, **command, signals, nullptr).measure();
  report_run(folder->path, options, true);
  std::fflush(nullptr);
  // A driver call that never returns would also hang the library's own clean-up.
  if ((*session)->left_thread_behind()) ::_exit(code);
  return code;
}

// The command of a rank whose node another process measures, or nobody.
int run_along(const Context& context, Prepared prepared, Signals& signals, const fs::path& marker_root,
              std::optional<Registration>* registration) {
  auto command =
      RunCommand::prepare(prepared.file, context.measured_command, marker_root, std::move(prepared.epochs), signals);
  if (!command) return report_error(command.error(), kCannotMeasure);
  const auto tell = [&](const std::function<void(Member&)>& change) {
    if (!registration || !*registration) return;
    if (const auto told = (*registration)->update(change); !told) report_error(told.error());
  };
  LiveLine live(false);
  tell([](Member& m) { m.begin = SystemClock().now(); });
  const auto warn = [](const Warning& warning) {
    report_error(Error{ErrorCode::io, "warning: " + warning.message, warning.remedy});
  };
  const auto begun = (*command)->begin(warn, live);
  RunCommand::Ended end{{kNotExecutable, std::nullopt}, SystemClock().now()};
  if (begun)
    end = (*command)->wait(Nanos{0}, [] {});
  else
    report_error(begun.error());
  tell([&](Member& m) {
    m.end = end.at;
    m.exit_code = end.how.exit_code;
    m.signal = end.how.signal;
    m.cpu_s = children_cpu_s();
  });
  return end.how.exit_code;
}

int follow(const Context& context, Prepared prepared, Signals& signals, Follower& follower) {
  int signal = 0;
  const auto opening = follower.wait([&] {
    while (const auto info = signals.next())
      if (is_terminating(static_cast<int>(info->ssi_signo))) signal = static_cast<int>(info->ssi_signo);
    return signal != 0;
  });
  if (signal != 0) return 128 + signal;
  const auto leader = follower.leader_name();
  if (const auto* refused = std::get_if<Follower::Refused>(&opening))
    return report_error({refused->why.code,
                         fmt::format("{}, which measures this node, could not begin: {}", leader, refused->why.message),
                         refused->why.hint},
                        kCannotMeasure);
  const auto* opened = std::get_if<Follower::Opened>(&opening);
  if (!opened) {
    report_error({ErrorCode::lost,
                  fmt::format("warning: {}, which was to measure this node, is gone: the command runs "
                              "without being measured",
                              leader),
                  ""});
    return run_along(context, std::move(prepared), signals, {}, nullptr);
  }
  if (!follower.registration())
    report_error({ErrorCode::io,
                  fmt::format("warning: node-local storage takes no more: {}, which measures this node, does "
                              "not know of this rank",
                              leader),
                  "free space there, or name another folder with ERGOMETER_LOCAL_DIR"});
  const int code = run_along(context, std::move(prepared), signals, opened->place.node, &follower.registration());
  if (!follower.leader_lives())
    report_error({ErrorCode::lost,
                  fmt::format("warning: {}, which measured this node, ended early: the record is cut", leader), ""});
  return code;
}

// One rank measures its node's part of a run that others write as well.
int lead(const RunOptions& options, const Context& context, Prepared prepared, Signals& signals, NodePart& part) {
  const Host host = context.host();
  auto settings = session_options(options, context, {}, prepared.name);
  const FolderWish wish{options.output, options.store, prepared.name};
  const auto refuse = [&](const Error& why) {
    part.refuse(why);
    part.take_back();
    return report_error(why, why.code == ErrorCode::invalid_argument ? kUsage : kCannotMeasure);
  };
  if (auto joined = part.join(wish, settings, host.clock); !joined) {
    if (part.has_seat() || joined.error().code != ErrorCode::exists) return refuse(joined.error());
    // Most likely another rank, of which nothing is known without node-local storage.
    report_error(
        {ErrorCode::exists, "warning: the command runs without being measured: " + joined.error().message, ""});
    return run_along(context, std::move(prepared), signals, {}, nullptr);
  }
  auto command = RunCommand::prepare(prepared.file, context.measured_command, part.record().node,
                                     std::move(prepared.epochs), signals);
  if (!command) return refuse(command.error());
  ::mallopt(M_ARENA_MAX, 4);
  auto session = Session::start(host, std::move(settings), part.take_writer());
  if (!session) return refuse(session.error());
  part.started(**session);
  const int code = Run(options, **session, **command, signals, &part).measure();
  if (part.is_reference()) {
    const auto unfinished = part.unfinished_nodes(kOtherNodes);
    report_run(part.record().run, options, unfinished.empty());
    if (!unfinished.empty() && !options.quiet)
      fmt::print(stderr, "still measuring, or never came: {}; later: ergometer show {}\n", fmt::join(unfinished, ", "),
                 part.record().run.string());
  }
  std::fflush(nullptr);
  if ((*session)->left_thread_behind()) ::_exit(code);
  return code;
}

// As one of the ranks of a launch; unset if this is none.
std::optional<int> run_as_rank(const RunOptions& options, const Context& context, Prepared& prepared,
                               Signals& signals) {
  const auto environment = current_environment();
  if (is_nameless_launch(environment))
    report_error({ErrorCode::unsupported,
                  "warning: this launcher gives its ranks no common name: each measures the whole node",
                  "give all ranks of a launch the same new ERGOMETER_LAUNCH"});
  const auto place = find_rank(context, environment);
  if (!place) return std::nullopt;
  auto seat = take_rank_seat(*place, {options.output, options.store, prepared.name}, environment);
  if (!seat) return std::nullopt;
  if (auto* follower = std::get_if<Follower>(&*seat)) return follow(context, std::move(prepared), signals, *follower);
  std::optional<Leader> leader;
  if (auto* leads = std::get_if<Leader>(&*seat)) leader = std::move(*leads);
  if (const auto* alone = std::get_if<Alone>(&*seat))
    report_error({alone->why.code, "warning: " + alone->why.message, alone->why.hint});
  NodePart part(*place, std::move(leader), environment);
  return lead(options, context, std::move(prepared), signals, part);
}

// All that must be right before anything is measured, then the run itself.
int run(const RunOptions& options, const Context& context) {
  const auto& argv = context.measured_command;
  if (argv.empty())
    return report_error(Error{ErrorCode::invalid_argument, "no command to measure",
                              "give it after two dashes: ergometer run [OPTIONS] -- COMMAND ..."});
  Prepared prepared;
  if (!options.epoch_regex.empty()) {
    auto created = EpochMarks::create(options.epoch_regex, options.epoch_at == "end" ? EpochAt::end : EpochAt::start);
    if (!created) return report_error(created.error());
    prepared.epochs = std::move(*created);
  }
  if (options.live_fd >= 0) ::fcntl(options.live_fd, F_SETFD, FD_CLOEXEC);  // not for the command
  const auto file = find_command(argv.front());
  if (!file) return report_error(file.error(), file.error().code == ErrorCode::not_found ? kNotFound : kNotExecutable);
  prepared.file = *file;
  prepared.name = options.name.empty() ? fs::path(argv.front()).filename().string() : options.name;
  Signals signals;
  if (const auto code = run_as_rank(options, context, prepared, signals)) return *code;
  return run_alone(options, context, std::move(prepared), signals);
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
