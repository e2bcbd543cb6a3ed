#include "measure/sampler.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <mutex>
#include <optional>
#include <utility>

namespace ergometer {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kLongestBackoff = 5s;
constexpr Nanos kShortestInterval = 1ms;
// Drivers want some room; what is never touched costs address space only.
constexpr std::size_t kStackBytes = 512 * 1024;
// Lets the kernel wake neighbours together; reads are stamped, so that a millisecond more does no harm.
constexpr unsigned long kTimerSlackNs = 1'000'000;

Nanos gap_limit(Nanos interval) { return std::max<Nanos>(2s, 5 * interval); }

// The reading of one sensor. Its functions are called on the sampler's thread with the state's mutex held, read aside.
struct Poll {
  Poll(Polled what, std::shared_ptr<Clock> c, MonoTime o)
      : sensor(std::move(what.sensor)),
        clock(std::move(c)),
        origin(o),
        interval(std::max(sensor->info().interval, kShortestInterval)),
        sink(std::move(what.sink)),
        on_first(std::move(what.on_first)),
        last_read_end(o) {}

  void take_reading(const Result<void>& result, Readings& readings, MonoTime before, MonoTime after);
  void take(Readings& readings, MonoTime before, MonoTime after);
  void take_failure(const Error& error, MonoTime before, MonoTime after);
  void take_success(MonoTime after);
  void plan(MonoTime now);
  void note_silence(MonoTime after, std::int64_t skipped);
  void end_episode();
  [[nodiscard]] MonoTime next_deadline(MonoTime now) const;
  void event(MonoTime t, const char* kind, std::string detail) {
    sink.event(Event{t, sensor->info().name, kind, std::move(detail)});
  }

  const std::shared_ptr<Sensor> sensor;
  const std::shared_ptr<Clock> clock;
  const MonoTime origin;
  const Nanos interval;
  SamplerSink sink;
  std::function<void()> on_first;  // emptied once called
  MonoTime deadline;

  SamplerCounts counts;
  MonoTime last_read_end;
  std::optional<MonoTime> last_row;
  std::optional<Error> failure;
  MonoTime failing_since;
  Nanos backoff{0};
  // The current run of missed ticks.
  std::int64_t episode_ticks = 0;
  MonoTime episode_begin;
  Nanos episode_longest{0};
};

}  // namespace

struct Sampler::State {
  void run();
  void serve(Poll& poll, bool last);

  std::shared_ptr<Clock> clock;
  StopSignal stop;
  std::function<void()> on_done;

  // Guards everything below and each use of a sink.
  mutable std::mutex mutex;
  std::vector<Poll> polls;
  bool abandoned = false;
  bool finished = false;

  pthread_t thread{};
  bool joined = false;
};

void Sampler::State::run() {
  const MonoTime begin = clock->now();
  for (auto& poll : polls) poll.deadline = begin;
  for (bool last = false; !last;) {
    const MonoTime next = std::min_element(polls.begin(), polls.end(), [](const Poll& a, const Poll& b) {
                            return a.deadline < b.deadline;
                          })->deadline;
    last = !clock->sleep_until(next, stop);
    for (auto& poll : polls)
      if (last || poll.deadline <= next) serve(poll, last);
    std::lock_guard lock(mutex);
    if (abandoned) break;
  }
  {
    std::lock_guard lock(mutex);
    if (!abandoned)
      for (auto& poll : polls) poll.end_episode();
    finished = true;
  }
  if (on_done) on_done();
}

void Sampler::State::serve(Poll& poll, bool last) {
  Readings readings;
  const MonoTime before = clock->now();
  const auto result = poll.sensor->read(readings);
  const MonoTime after = clock->now();
  {
    std::lock_guard lock(mutex);
    if (abandoned) return;
    poll.take_reading(result, readings, before, after);
  }
  if (const auto first = std::exchange(poll.on_first, {})) first();
  if (last) return;
  std::lock_guard lock(mutex);
  if (!abandoned) poll.plan(clock->now());
}

void Poll::plan(MonoTime now) {
  const MonoTime next = next_deadline(now);
  if (!failure) note_silence(now, (now - deadline) / interval);
  deadline = next;
}

// The first tick after `now`. A failing sensor is tried on the coarser grid of its back-off.
MonoTime Poll::next_deadline(MonoTime now) const {
  const Nanos step = failure ? backoff : interval;
  return origin + ((now - origin) / step + 1) * step;
}

void Poll::take_reading(const Result<void>& result, Readings& readings, MonoTime before, MonoTime after) {
  ++counts.reads;
  for (auto& note : readings.events) event(before + (after - before) / 2, note.kind.c_str(), std::move(note.detail));
  if (result) take_success(after);
  take(readings, before, after);
  if (!result) take_failure(result.error(), before, after);
}

void Poll::take(Readings& readings, MonoTime before, MonoTime after) {
  const auto& info = sensor->info();
  auto& rows = readings.rows;
  std::size_t kept = 0;
  for (auto& row : rows) {
    if (!info.own_time) {
      row.t = before + (after - before) / 2;
      row.read_width = after - before;
    }
    if ((last_row && row.t <= *last_row) || row.values.size() != info.channels.size()) continue;
    last_row = row.t;
    if (&rows[kept] != &row) rows[kept] = std::move(row);
    ++kept;
  }
  counts.rows += static_cast<std::int64_t>(kept);
  if (kept > 0) sink.rows(std::span<const Row>(rows.data(), kept));
}

void Poll::take_success(MonoTime after) {
  if (!failure) return;
  event(after, "back", fmt::format("answers again after {:.1f} s", seconds(after - failing_since)));
  failure.reset();
  // The failure was reported as such; the time it took is not a late tick as well.
  last_read_end = after;
}

void Poll::take_failure(const Error& error, MonoTime before, MonoTime after) {
  ++counts.errors;
  if (!failure) {
    end_episode();
    failing_since = before;
    backoff = interval;
  }
  if (!failure || failure->code != error.code)
    event(before, error.code == ErrorCode::lost ? "lost" : "gap", error.message);
  failure = error;
  backoff = std::min(std::max(2 * backoff, interval), std::max(kLongestBackoff, interval));
  // A missing sample has its own time, so that nothing is drawn or integrated across it. A device's own buffer may
  // still hold the rows of this time, so there the row is left out.
  if (sensor->info().own_time) return;
  Readings missing;
  missing.add(std::vector<std::optional<double>>(sensor->info().channels.size()));
  take(missing, before, after);
}

// Counts the ticks that passed since the one just served.
void Poll::note_silence(MonoTime now, std::int64_t skipped) {
  const Nanos silence = now - last_read_end;
  const MonoTime since = std::exchange(last_read_end, now);
  if (skipped == 1) ++counts.late;
  if (skipped < 2) return end_episode();
  counts.missed += skipped;
  if (episode_ticks == 0) episode_begin = since;
  episode_ticks += skipped;
  episode_longest = std::max(episode_longest, silence);
}

void Poll::end_episode() {
  if (episode_ticks == 0) return;
  const bool gap = episode_longest > gap_limit(interval);
  event(
      episode_begin, gap ? "gap" : "late",
      fmt::format("{} ticks missed, longest time without a reading {:.3f} s", episode_ticks, seconds(episode_longest)));
  episode_ticks = 0;
  episode_longest = Nanos{0};
}

Sampler::Sampler(std::vector<Polled> sensors, std::shared_ptr<Clock> clock, MonoTime origin,
                 std::function<void()> on_done)
    : state_(std::make_shared<State>()) {
  state_->clock = clock;
  state_->on_done = std::move(on_done);
  state_->polls.reserve(sensors.size());
  for (auto& sensor : sensors) state_->polls.emplace_back(std::move(sensor), clock, origin);
  // Joined here, not in the thread: simulated time must not run on before the thread has begun.
  state_->clock->join();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  // Signals are the owner's business: the thread is born with all of them blocked.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto* own = new std::shared_ptr<State>(state_);
  const auto entry = [](void* argument) -> void* {
    std::shared_ptr<State> state = std::move(*static_cast<std::shared_ptr<State>*>(argument));
    delete static_cast<std::shared_ptr<State>*>(argument);
    prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
    pthread_setname_np(pthread_self(), ("e:" + state->polls.front().sensor->info().name).substr(0, 15).c_str());
    state->run();
    state->clock->leave();
    return nullptr;
  };
  if (pthread_create(&state_->thread, &attributes, entry, own) != 0) {
    delete own;
    state_->clock->leave();
    state_->joined = state_->finished = true;
    for (auto& poll : state_->polls) {
      poll.event(origin, "gap", "the system refused a thread for this sensor");
      if (poll.on_first) poll.on_first();
    }
    if (state_->on_done) state_->on_done();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
}

Sampler::~Sampler() {
  request_stop();
  abandon();
}

void Sampler::request_stop() { state_->stop.request(); }

bool Sampler::finished() const {
  std::lock_guard lock(state_->mutex);
  return state_->finished;
}

std::vector<StuckSensor> Sampler::abandon() {
  std::vector<StuckSensor> stuck;
  {
    std::lock_guard lock(state_->mutex);
    if (state_->joined) return stuck;
    state_->joined = true;
    if (!state_->finished) {
      for (auto& poll : state_->polls) {
        if (!state_->abandoned) poll.end_episode();
        stuck.push_back({poll.sensor->info().name, poll.last_read_end});
      }
      state_->abandoned = true;
    }
  }
  if (stuck.empty())
    pthread_join(state_->thread, nullptr);
  else
    pthread_detach(state_->thread);
  return stuck;
}

SamplerCounts Sampler::counts(std::size_t sensor) const {
  std::lock_guard lock(state_->mutex);
  return state_->polls[sensor].counts;
}

}  // namespace ergometer
