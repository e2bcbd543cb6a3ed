#include "measure/session.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>

#include "base/text.hpp"
#include "measure/live_meter.hpp"
#include "measure/requirements.hpp"
#include "measure/sampler.hpp"
#include "store/marker_log.hpp"
#include "store/run_writer.hpp"

namespace ergometer {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kFirstReadings = 2s;  // longest wait for every sensor's first reading
constexpr Nanos kPatience = 3s;       // for the last readings
constexpr Nanos kFlushEvery = 400ms;  // with sensors harvested each 500 ms, a kill loses less than 1 s
constexpr Nanos kCheckEvery = 1s;     // of suspend and wall clock
constexpr Nanos kWallStep = 10ms;     // a larger change of the wall clock's offset is a step
constexpr Nanos kClockPairEvery = 10s;
constexpr std::size_t kMostClockPairs = 720;

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto s = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return s(used.ru_utime) + s(used.ru_stime);
}

double max_rss_bytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) * 1024;
}

// Counts threads down to nothing and then ends the waiter's sleep. Shared with the threads, which may outlive a
// session.
struct Countdown {
  explicit Countdown(int count) : left(count) {}
  void arrive() {
    if (--left == 0) reached.request();
  }
  std::atomic<int> left;
  StopSignal reached;
};

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] ? name.data() : "localhost";
}

}  // namespace

struct Session::State {
  std::shared_ptr<Clock> clock;
  std::unique_ptr<RunWriter> writer;
  Node node;
  std::unique_ptr<LiveMeter> meter;
  std::unique_ptr<MarkerLog> markers;
  std::vector<std::unique_ptr<Sampler>> samplers;
  std::shared_ptr<Countdown> done;
  StopSignal stop_housekeeping;
  std::thread housekeeping;
  MonoTime origin;
  double cpu_at_start = 0;
  bool stopped = false;
  bool left_thread_behind = false;
  std::optional<Error> stop_error;

  std::mutex mutex;  // guards what follows
  Manifest manifest;
  std::optional<std::string> write_failure;  // the last reported one, so that each is told once

  // Kept by housekeeping's thread alone.
  Nanos wall_offset{0}, suspended{0};
  Nanos pair_every = kClockPairEvery;

  Result<void> open(const std::vector<std::shared_ptr<Sensor>>& sensors);
  void start_samplers(const std::vector<std::shared_ptr<Sensor>>& sensors, const std::vector<SampleStream*>& streams);
  void start_housekeeping();
  void keep_house();
  void check_clocks();
  void note_clock_pair();
  void flush();
  void stop_samplers();
  void stop_threads();
  void note_failure(const Error& error);
  ClockPair clock_pair() const { return {clock->now(), clock->wall()}; }
  void add_event(const char* kind, std::string detail) {
    writer->add_event(node.name, {clock->now(), "session", kind, std::move(detail)});
  }
  Manifest manifest_copy() {
    std::lock_guard lock(mutex);
    return manifest;
  }
};

void Session::State::note_failure(const Error& error) {
  std::lock_guard lock(mutex);
  if (write_failure == error.message) return;
  write_failure = error.message;
  manifest.warnings.push_back({"output", error.message, error.hint});
}

void Session::State::flush() {
  if (const auto written = writer->flush(); !written) note_failure(written.error());
}

// A suspend or a step of the wall clock since the last look. Both change only labels: durations are monotonic.
void Session::State::check_clocks() {
  const ClockPair pair = clock_pair();
  const Nanos offset(to_ns(pair.wall) - to_ns(pair.mono));
  const Nanos asleep = clock->suspended();
  const Nanos slept = asleep - suspended;
  if (slept > 100ms) add_event("suspend", fmt::format("the machine slept for {:.1f} s", seconds(slept)));
  // The wall clock goes on during a suspend, so that much of its change is no step.
  const Nanos step = offset - wall_offset - (slept > 100ms ? slept : Nanos{0});
  if (step > kWallStep || step < -kWallStep)
    add_event("clock", fmt::format("the wall clock was set {} by {:.3f} s", step < Nanos{0} ? "back" : "forward",
                                   std::abs(seconds(step))));
  wall_offset = offset;
  suspended = asleep;
}

void Session::State::note_clock_pair() {
  Manifest copy;
  {
    std::lock_guard lock(mutex);
    auto& pairs = manifest.clocks;
    pairs.push_back(clock_pair());
    if (pairs.size() > kMostClockPairs) {
      // A long run keeps every second pair and takes them half as often from here on.
      std::size_t kept = 0;
      for (std::size_t i = 0; i < pairs.size(); i += 2) pairs[kept++] = pairs[i];
      pairs.resize(kept);
      pair_every *= 2;
    }
    copy = manifest;
  }
  if (const auto written = writer->write_manifest(copy); !written) note_failure(written.error());
}

void Session::State::keep_house() {
  MonoTime next_check = origin + kCheckEvery;
  MonoTime next_pair = origin + pair_every;
  for (MonoTime next = origin + kFlushEvery; clock->sleep_until(next, stop_housekeeping);) {
    const MonoTime now = clock->now();
    flush();
    if (now >= next_check) {
      check_clocks();
      next_check = now + kCheckEvery;
    }
    if (now >= next_pair) {
      note_clock_pair();
      next_pair = now + pair_every;
    }
    next = origin + ((now - origin) / kFlushEvery + 1) * kFlushEvery;
  }
}

Result<void> Session::State::open(const std::vector<std::shared_ptr<Sensor>>& sensors) {
  std::vector<SampleStream*> streams;
  for (const auto& sensor : sensors) {
    auto stream = writer->open_samples(node.name, sensor->info());
    if (!stream) return tl::unexpected(stream.error());
    streams.push_back(*stream);
  }
  start_samplers(sensors, streams);
  return {};
}

void Session::State::start_samplers(const std::vector<std::shared_ptr<Sensor>>& sensors,
                                    const std::vector<SampleStream*>& streams) {
  origin = clock->now();
  const int count = static_cast<int>(sensors.size());
  done = std::make_shared<Countdown>(count);
  const auto first = std::make_shared<Countdown>(count);
  for (std::size_t i = 0; i < sensors.size(); ++i) {
    SamplerSink sink;
    sink.rows = [this, i, stream = streams[i]](std::span<const Row> rows) {
      stream->append(rows);
      meter->add(i, rows);
    };
    sink.event = [this](const Event& event) { writer->add_event(node.name, event); };
    samplers.push_back(std::make_unique<Sampler>(
        sensors[i], clock, origin, std::move(sink), [first] { first->arrive(); }, [done = done] { done->arrive(); }));
  }
  start_housekeeping();
  if (count > 0) clock->sleep_until(clock->now() + kFirstReadings, first->reached);
}

void Session::State::start_housekeeping() {
  wall_offset = Nanos(to_ns(clock->wall()) - to_ns(clock->now()));
  suspended = clock->suspended();
  clock->join();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  housekeeping = std::thread([this] {
    pthread_setname_np(pthread_self(), "e:writer");
    keep_house();
    clock->leave();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Session::State::stop_samplers() {
  for (auto& sampler : samplers) sampler->request_stop();
  if (!samplers.empty()) clock->sleep_until(clock->now() + kPatience, done->reached);
  for (auto& sampler : samplers) {
    const auto stuck_since = sampler->abandon();
    if (!stuck_since) continue;
    left_thread_behind = true;
    writer->add_event(node.name, {*stuck_since, sampler->info().name, "gap",
                                  fmt::format("no answer for {:.1f} s: a read never returned and was left behind",
                                              seconds(clock->now() - *stuck_since))});
  }
}

void Session::State::stop_threads() {
  stop_samplers();
  stop_housekeeping.request();
  if (housekeeping.joinable()) housekeeping.join();
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}

Session::~Session() {
  if (!state_ || state_->stopped || !state_->writer) return;
  state_->stop_threads();
  state_->flush();
}

Result<std::unique_ptr<Session>> Session::start(const Host& host, SessionOptions options) {
  const double cpu_at_start = cpu_seconds();
  auto found = discover(host, options.discover);
  if (!found) return tl::unexpected(found.error());
  if (auto met = check_requirements(options.require, *found); !met) return tl::unexpected(met.error());

  auto state = std::make_unique<State>();
  state->clock = host.clock;
  state->cpu_at_start = cpu_at_start;
  state->node = found->node;
  Node& node = state->node;
  if (node.hostname.empty()) node.hostname = host_name();
  node.name = file_name_of(node.hostname);
  node.sensors.clear();
  for (const auto& sensor : found->sensors) node.sensors.push_back(sensor->info());

  Manifest& manifest = state->manifest;
  manifest.name = std::move(options.name);
  manifest.command = std::move(options.command);
  manifest.directory = std::move(options.directory);
  manifest.environment = recorded_environment(options.discover.environment);
  manifest.tool_version = ERGOMETER_VERSION;
  manifest.nodes = {node.name};
  manifest.clocks = {state->clock_pair()};
  manifest.warnings = found->warnings;
  for (auto& warning : absence_warnings(*found)) manifest.warnings.push_back(std::move(warning));

  auto writer = RunWriter::create(options.run_dir, manifest);
  if (!writer) return tl::unexpected(writer.error());
  state->writer = std::move(*writer);
  if (auto written = state->writer->write_node(node); !written) return tl::unexpected(written.error());
  state->meter = std::make_unique<LiveMeter>(node);
  state->markers = std::make_unique<MarkerLog>(state->writer->dir() / "markers");
  if (auto opened = state->open(found->sensors); !opened) return tl::unexpected(opened.error());
  return std::unique_ptr<Session>(new Session(std::move(state)));
}

const std::filesystem::path& Session::run_dir() const { return state_->writer->dir(); }
const Node& Session::node() const { return state_->node; }

std::vector<Warning> Session::warnings() const { return state_->manifest_copy().warnings; }

void Session::idle_before_begins() {
  std::lock_guard lock(state_->mutex);
  state_->manifest.idle_before = Interval{state_->clock->now(), state_->clock->now()};
}

void Session::idle_before_ends() {
  std::lock_guard lock(state_->mutex);
  if (state_->manifest.idle_before) state_->manifest.idle_before->end = state_->clock->now();
}

void Session::command_begins() {
  state_->meter->restart();
  std::lock_guard lock(state_->mutex);
  state_->manifest.begin = state_->clock->now();
}

void Session::command_ended(std::optional<int> exit_code, std::optional<int> signal) {
  std::lock_guard lock(state_->mutex);
  state_->manifest.end = state_->clock->now();
  state_->manifest.exit_code = exit_code;
  state_->manifest.signal = signal;
}

void Session::idle_after_begins() {
  std::lock_guard lock(state_->mutex);
  state_->manifest.idle_after = Interval{state_->clock->now(), state_->clock->now()};
}

void Session::idle_after_ends() {
  std::lock_guard lock(state_->mutex);
  if (state_->manifest.idle_after) state_->manifest.idle_after->end = state_->clock->now();
}

void Session::event(std::string source, std::string kind, std::string detail) {
  state_->writer->add_event(state_->node.name,
                            {state_->clock->now(), std::move(source), std::move(kind), std::move(detail)});
}

void Session::warn(Warning warning) {
  std::lock_guard lock(state_->mutex);
  state_->manifest.warnings.push_back(std::move(warning));
}

bool Session::left_thread_behind() const { return state_->left_thread_behind; }

LiveView Session::live() {
  LiveView view;
  const MonoTime now = state_->clock->now();
  {
    std::lock_guard lock(state_->mutex);
    view.elapsed = now - state_->manifest.begin.value_or(state_->origin);
  }
  state_->meter->fill(view, now);
  state_->markers->poll();
  view.region = state_->markers->current();
  return view;
}

Result<Manifest> Session::stop() {
  State& s = *state_;
  if (!s.stopped) {
    s.stop_threads();
    s.flush();
    s.check_clocks();
    const MonoTime cut_at = s.manifest.end.value_or(s.clock->now());
    if (auto written = s.writer->write_regions(s.node.name, cut_at); !written) s.note_failure(written.error());
    s.flush();
    s.manifest.clocks.push_back(s.clock_pair());
    s.manifest.overhead = Overhead{cpu_seconds() - s.cpu_at_start, max_rss_bytes()};
    s.manifest.state = "complete";
    if (auto written = s.writer->write_manifest(s.manifest); !written) s.stop_error = written.error();
    s.stopped = true;
  }
  if (s.stop_error) return tl::unexpected(*s.stop_error);
  return s.manifest;
}

}  // namespace ergometer
