// `ergometer step`: measures one node's part of a step that somebody else starts (the SPANK plugin, in Slurm's step
// daemon), until a descriptor closes. What is started inside with `ergometer run` takes part in the same run. Not for
// people, so that the help does not show it.
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "discover_options.hpp"
#include "library/load_run.hpp"
#include "measure/session.hpp"
#include "report/json.hpp"
#include "run_process.hpp"
#include "run_ranks.hpp"

namespace ergometer::cli {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr Nanos kStepTick = 200ms;
constexpr Nanos kOtherParts = 3s;

struct StepOptions {
  std::string output, name = "step", store = "runs", interval, sensors;
  int until_fd = -1, ready_fd = -1, root_pid = 0;
};

// What the other end of --until-fd tells, a line each, while the tasks run: "begin RANK PID" and "end RANK CODE", where
// CODE is as the shell sees it. The end of the file ends the step.
class TaskNews {
 public:
  explicit TaskNews(int fd, std::string node) : fd_(fd), node_(std::move(node)) {
    ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
  }

  // Waits for news, at most so long. False once the file has ended.
  bool wait(Nanos patience) {
    pollfd waiting{fd_, POLLIN, 0};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
    if (::poll(&waiting, 1, static_cast<int>(ms)) <= 0) return true;
    std::array<char, 4096> buffer;
    const ssize_t n = ::read(fd_, buffer.data(), buffer.size());
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    text_.append(buffer.data(), static_cast<std::size_t>(n));
    for (auto end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      take(text_.substr(0, end));
      text_.erase(0, end + 1);
    }
    if (text_.size() > buffer.size()) text_.clear();  // no line of ours
    return true;
  }

  [[nodiscard]] std::vector<Member> tasks() const {
    std::vector<Member> all;
    for (const auto& [rank, task] : tasks_) all.push_back(task);
    return all;
  }

 private:
  void take(const std::string& line) {
    const auto words = split(trim(line), ' ');
    const auto rank = words.size() == 3 ? parse_int(words[1]) : std::nullopt;
    const auto number = words.size() == 3 ? parse_int(words[2]) : std::nullopt;
    if (!rank || !number || *rank < 0 || *rank > INT32_MAX || *number < 0 || *number > INT32_MAX) return;
    Member& task = tasks_[static_cast<int>(*rank)];
    task.rank = static_cast<int>(*rank);
    task.node = node_;
    if (words[0] == "begin") {
      task.pid = static_cast<int>(*number);
      task.begin = SystemClock().now();
    } else if (words[0] == "end") {
      task.exit_code = static_cast<int>(*number);
      if (*number > 128 && *number < 128 + 65) task.signal = static_cast<int>(*number) - 128;
      task.end = SystemClock().now();
    }
  }

  int fd_;
  std::string node_, text_;
  std::map<int, Member> tasks_;
};

// Says on --until-fd, from when its other end asks for the end, that this process is alive: its record may lie on
// storage that takes its time (apps/slurm/sampler.cpp listens).
class SignOfLife {
 public:
  explicit SignOfLife(int fd) : fd_(fd), stop_(::eventfd(0, EFD_CLOEXEC)) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  SignOfLife(const SignOfLife&) = delete;
  SignOfLife& operator=(const SignOfLife&) = delete;
  ~SignOfLife() {
    ::eventfd_write(stop_, 1);
    thread_.join();
    ::close(stop_);
  }

 private:
  static constexpr int kPeriodMs = 300;

  void run() const {
    std::array<pollfd, 2> waiting{{{stop_, POLLIN, 0}, {fd_, POLLRDHUP, 0}}};
    while (::poll(waiting.data(), waiting.size(), -1) < 0) {
    }
    while (waiting[0].revents == 0 && ::send(fd_, "alive\n", 6, MSG_NOSIGNAL | MSG_DONTWAIT) > 0 &&
           ::poll(waiting.data(), 1, kPeriodMs) <= 0) {
    }
  }

  int fd_, stop_;
  std::thread thread_;
};

// Tells where markers go, for ERGOMETER_RUN of the tasks.
void tell_ready(const StepOptions& options, const fs::path& marker_root) {
  if (options.ready_fd < 0) return;
  const auto line = marker_root.string() + "\n";
  // Nobody waits for it any more: the step is measured all the same.
  if (::write(options.ready_fd, line.data(), line.size()) < 0) return;
  ::close(options.ready_fd);
}

SessionOptions step_session(const StepOptions& options, const Context& context) {
  SessionOptions session;
  session.name = options.name;
  session.discover = default_discover_options(context);
  session.discover.interval = parse_duration(options.interval);
  for (const auto part : split(options.sensors, ','))
    if (!trim(part).empty()) session.discover.only.emplace_back(trim(part));
  session.discover.root_pid = options.root_pid;
  session.late_devices = true;
  return session;
}

// The signals that end a program end the measurement in order, as the end of the file does.
bool ended_by_signal(const Signals& signals) {
  bool ended = false;
  while (const auto info = signals.next()) ended = ended || is_terminating(static_cast<int>(info->ssi_signo));
  return ended;
}

// Another process measures this machine (several nodes of the batch system lie on it).
int follow_step_leader(const StepOptions& options, Follower& follower, const Signals& signals,
                       const std::string& node) {
  const auto opening = follower.wait([&] { return ended_by_signal(signals); });
  const auto* opened = std::get_if<Follower::Opened>(&opening);
  if (!opened)
    return report_error(
        {ErrorCode::lost, fmt::format("{}, which measures this machine, could not begin", follower.leader_name()), ""},
        kCannotMeasure);
  tell_ready(options, opened->place.node);
  TaskNews news(options.until_fd, node);
  while (news.wait(kStepTick) && !ended_by_signal(signals)) {
  }
  const auto together = ranks_together(news.tasks(), node);
  if (auto& registration = follower.registration())
    if (const auto told = registration->update([&](Member& m) {
          m.begin = together.begin;
          m.end = together.end;
          m.exit_code = together.exit_code;
          m.signal = together.signal;
        });
        !told)
      return report_error(told.error());
  return 0;
}

int measure_step(const StepOptions& options, const Context& context, NodePart& part, Signals& signals,
                 const std::string& node) {
  const Host host = context.host();
  auto settings = step_session(options, context);
  const auto refuse = [&](const Error& why) {
    part.refuse(why);
    part.take_back();
    return report_error(why, kCannotMeasure);
  };
  if (auto joined = part.join({options.output, options.store, options.name}, settings, host.clock); !joined)
    return refuse(joined.error());
  tell_ready(options, part.record().node);
  ::mallopt(M_ARENA_MAX, 4);
  auto session = Session::start(host, std::move(settings), part.take_writer());
  if (!session) return refuse(session.error());
  part.started(**session);
  part.open();
  (*session)->command_begins();
  part.command_begins();
  TaskNews news(options.until_fd, node);
  while (news.wait(kStepTick) && !ended_by_signal(signals)) part.look();
  part.command_ended(std::nullopt, std::nullopt, SystemClock().now());
  part.wait_for_others(signals, Nanos{0}, [] {});
  part.finish(news.tasks());
  if (const auto stopped = (*session)->stop(); !stopped) return report_error(stopped.error(), kCannotMeasure);
  if (part.is_reference() && part.unfinished_nodes(kOtherParts).empty())
    if (const auto loaded = load_run(part.record().run); loaded)
      if (const auto written = write_summary(part.record().run, loaded->summary); !written)
        report_error(written.error());
  std::fflush(nullptr);
  if ((*session)->left_thread_behind()) ::_exit(0);
  return 0;
}

int step(const StepOptions& options, const Context& context) {
  const auto environment = current_environment();
  const auto place = find_rank(context, environment);
  if (!place)
    return report_error(
        {ErrorCode::invalid_argument, "there is no step here", "this command is started inside a Slurm step"});
  for (const int fd : {options.until_fd, options.ready_fd})
    if (fd >= 0 && ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
      return report_error(errno_error("use", fmt::format("descriptor {}", fd), errno));
  Signals signals;
  const SignOfLife alive(options.until_fd);
  auto seat = take_step_seat(*place, options.root_pid);
  if (auto* follower = std::get_if<Follower>(&seat))
    return follow_step_leader(options, *follower, signals, place->here.node);
  std::optional<Leader> leader;
  if (auto* leads = std::get_if<Leader>(&seat)) leader = std::move(*leads);
  NodePart part(*place, std::move(leader), environment);
  return measure_step(options, context, part, signals, place->here.node);
}

}  // namespace

void add_step(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand("step", "Measure a node's part of a step until a descriptor closes")->group("");
  auto options = std::make_shared<StepOptions>();
  sub->add_option("--until-fd", options->until_fd, "Descriptor whose end of file ends the step")
      ->required()
      ->check(CLI::NonNegativeNumber);
  sub->add_option("--root-pid", options->root_pid, "The tasks are below this process")
      ->required()
      ->check(CLI::PositiveNumber);
  sub->add_option("--ready-fd", options->ready_fd, "Descriptor to which the folder for markers is written, as a line");
  sub->add_option("-o,--output", options->output, "Folder of the run (default: STORE/NAME-KEY)");
  sub->add_option("--store", options->store, "Folder for new runs");
  sub->add_option("--name", options->name, "Name of the run");
  sub->add_option("--interval", options->interval, "Time between readings of quick sensors");
  sub->add_option("--sensors", options->sensors, "Use only these interfaces");
  sub->callback([options, &context] { context.exit_code = step(*options, context); });
}

}  // namespace ergometer::cli
