#include "measure/session.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <map>
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
// A kill loses less than 1 s: what is older than kFlushAge is written at each look, and buffers of the driver, read
// each 500 ms, are older than that when they come.
constexpr Nanos kFlushEvery = 400ms;
constexpr Nanos kFlushAge = 500ms;
constexpr Nanos kCheckEvery = 1s;  // of suspend and wall clock
constexpr Nanos kWallStep = 10ms;  // a larger change of the wall clock's offset is a step
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
  void expect(int more) { left += more; }
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
  Discovery found;
  Node node;
  std::unique_ptr<LiveMeter> meter;
  std::unique_ptr<MarkerLog> markers;
  std::vector<std::unique_ptr<Sampler>> samplers;
  std::shared_ptr<Countdown> done;
  StopSignal stop_housekeeping;
  std::thread housekeeping;
  std::thread late;  // waits for slow drivers; owns `found`, `node` and `samplers` until it is joined
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

  Result<void> add_sensors(std::size_t first, const std::function<void()>& on_first);
  Result<void> begin_samplers();
  void take_node();
  void wait_for_late(SensorSearch search);
  void start_late(SensorSearch search);
  void start_housekeeping();
  void keep_house();
  void check_clocks();
  void note_clock_pair();
  void flush(std::optional<MonoTime> before = std::nullopt);
  void stop_samplers();
  void stop_threads();
  void note_failure(const Error& error);
  ClockPair clock_pair() const { return {clock->now(), clock->wall(), clock->wall_error()}; }
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

void Session::State::flush(std::optional<MonoTime> before) {
  if (const auto written = writer->flush(before); !written) note_failure(written.error());
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
    flush(now - kFlushAge);
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

// The sensors found so far, as node.json tells them.
void Session::State::take_node() {
  const std::string name = node.name;
  node = found.node;
  if (node.hostname.empty()) node.hostname = host_name();
  node.name = name.empty() ? file_name_of(node.hostname) : name;
  node.sensors.clear();
  for (const auto& sensor : found.sensors) node.sensors.push_back(sensor->info());
}

// Whether energy is lost if the command begins before this sensor's first reading. It is not where the device keeps a
// history; and what a process has used counts from its own beginning.
bool needs_early_reading(const SensorInfo& sensor) {
  return !sensor.own_time && std::ranges::any_of(sensor.channels, [](const Channel& c) {
    return c.quantity == Quantity::energy || c.quantity == Quantity::power;
  });
}

// Files and samplers of found.sensors from number `first` on. `on_first` follows the first reading of each that needs
// it.
Result<void> Session::State::add_sensors(std::size_t first, const std::function<void()>& on_first) {
  meter->extend(node);
  std::vector<SampleStream*> streams;
  for (std::size_t i = first; i < found.sensors.size(); ++i) {
    auto stream = writer->open_samples(node.name, found.sensors[i]->info());
    if (!stream) return tl::unexpected(stream.error());
    streams.push_back(*stream);
  }
  std::vector<std::vector<Polled>> threads;
  std::map<std::string, std::size_t> shared;  // thread's name -> its place in `threads`
  for (std::size_t i = first; i < found.sensors.size(); ++i) {
    SamplerSink sink;
    sink.rows = [this, i, stream = streams[i - first]](std::span<const Row> rows) {
      stream->append(rows);
      meter->add(i, rows);
    };
    sink.event = [this](const Event& event) { writer->add_event(node.name, event); };
    const auto& sensor = found.sensors[i];
    const auto [place, is_new] =
        sensor->thread().empty() ? std::pair(shared.end(), true) : shared.try_emplace(sensor->thread(), threads.size());
    if (is_new) threads.emplace_back();
    auto& thread = is_new ? threads.back() : threads[place->second];
    thread.push_back(
        {sensor, std::move(sink), needs_early_reading(sensor->info()) ? on_first : std::function<void()>()});
  }
  done->expect(static_cast<int>(threads.size()));
  for (auto& thread : threads)
    samplers.push_back(std::make_unique<Sampler>(std::move(thread), clock, origin, [done = done] { done->arrive(); }));
  return {};
}

// node.json is written while the sensors take their first readings.
Result<void> Session::State::begin_samplers() {
  origin = clock->now();
  const auto count = static_cast<int>(
      std::ranges::count_if(found.sensors, [](const auto& sensor) { return needs_early_reading(sensor->info()); }));
  const auto first = std::make_shared<Countdown>(count);
  if (auto added = add_sensors(0, [first] { first->arrive(); }); !added) return added;
  start_housekeeping();
  if (auto written = writer->write_node(node); !written) return written;
  if (count > 0) clock->sleep_until(clock->now() + kFirstReadings, first->reached);
  return {};
}

void Session::State::wait_for_late(SensorSearch search) {
  for (std::size_t before = found.sensors.size(); search.next(found); before = found.sensors.size()) {
    take_node();
    auto added = writer->write_node(node);
    if (added && found.sensors.size() > before) added = add_sensors(before, [] {});
    if (!added) note_failure(added.error());
  }
  std::lock_guard lock(mutex);
  manifest.warnings.insert(manifest.warnings.end(), found.warnings.begin(), found.warnings.end());
  for (auto& warning : absence_warnings(found)) manifest.warnings.push_back(std::move(warning));
}

void Session::State::start_late(SensorSearch search) {
  clock->join();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  late = std::thread([this, waiting = std::make_shared<SensorSearch>(std::move(search))] {
    pthread_setname_np(pthread_self(), "e:late");
    wait_for_late(std::move(*waiting));
    clock->leave();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
    for (const auto& stuck : sampler->abandon()) {
      left_thread_behind = true;
      writer->add_event(node.name, {stuck.since, stuck.name, "gap",
                                    fmt::format("no answer for {:.1f} s: a read never returned and was left behind",
                                                seconds(clock->now() - stuck.since))});
    }
  }
}

void Session::State::stop_threads() {
  if (late.joinable()) late.join();
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

Manifest first_manifest(const SessionOptions& options, Clock& clock) {
  Manifest manifest;
  manifest.name = options.name;
  manifest.command = options.command;
  manifest.directory = options.directory;
  manifest.environment = recorded_environment(options.discover.environment);
  manifest.tool_version = ERGOMETER_VERSION;
  manifest.clocks = {{clock.now(), clock.wall(), clock.wall_error()}};
  manifest.place = options.place;
  return manifest;
}

Result<std::unique_ptr<Session>> Session::start(const Host& host, SessionOptions options,
                                                std::unique_ptr<RunWriter> part) {
  auto state = std::make_unique<State>();
  state->cpu_at_start = cpu_seconds();
  state->clock = host.clock;
  const bool late = options.late_devices && options.require.empty();
  auto search = SensorSearch::begin(host, options.discover);
  if (!search) return tl::unexpected(search.error());
  auto found = search->quick();
  if (!found) return tl::unexpected(found.error());
  if (!late) search->finish(*found);
  if (auto met = check_requirements(options.require, *found); !met) return tl::unexpected(met.error());
  state->found = std::move(*found);
  if (part) state->node.name = part->node();
  state->take_node();

  Manifest& manifest = state->manifest;
  manifest = first_manifest(options, *host.clock);
  manifest.nodes = {state->node.name};
  if (!late) {
    manifest.warnings = state->found.warnings;
    for (auto& warning : absence_warnings(state->found)) manifest.warnings.push_back(std::move(warning));
  }

  if (part) {
    state->writer = std::move(part);
  } else {
    auto writer = RunWriter::create(options.run_dir, manifest);
    if (!writer) return tl::unexpected(writer.error());
    state->writer = std::move(*writer);
  }
  if (auto made = state->writer->add_node(state->node.name); !made) return tl::unexpected(made.error());
  state->meter = std::make_unique<LiveMeter>();
  state->markers = std::make_unique<MarkerLog>(state->writer->marker_root() / "markers");
  state->done = std::make_shared<Countdown>(0);
  // From here on threads use the state, so that it must end in order also on an error.
  std::unique_ptr<Session> session(new Session(std::move(state)));
  if (auto begun = session->state_->begin_samplers(); !begun) return tl::unexpected(begun.error());
  if (late) session->state_->start_late(std::move(*search));
  return session;
}

const std::filesystem::path& Session::run_dir() const { return state_->writer->dir(); }
const std::filesystem::path& Session::marker_root() const { return state_->writer->marker_root(); }
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

void Session::command_ended(std::optional<int> exit_code, std::optional<int> signal, std::optional<MonoTime> begin,
                            std::optional<MonoTime> end) {
  std::lock_guard lock(state_->mutex);
  if (begin) state_->manifest.begin = begin;
  state_->manifest.end = end ? *end : state_->clock->now();
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

void Session::note_ranks(std::vector<RankEnd> ranks, std::vector<std::string> aliases) {
  std::lock_guard lock(state_->mutex);
  state_->manifest.ranks = std::move(ranks);
  if (state_->manifest.place) state_->manifest.place->aliases = std::move(aliases);
}

void Session::note_clock(ClockLink link) {
  std::lock_guard lock(state_->mutex);
  state_->manifest.clock = std::move(link);
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
