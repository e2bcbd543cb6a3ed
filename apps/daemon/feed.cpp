#include "daemon/feed.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "daemon/limits.hpp"

namespace ergometer::daemon {
namespace {

constexpr std::size_t kLongestDetail = 400;

struct Entry {
  std::optional<Row> row;
  Readings::Note event;  // if no row
};

}  // namespace

struct Feed::State {
  void run();
  void keep(Readings& readings, const Result<void>& result, MonoTime before, MonoTime after);
  void push(Entry entry);

  std::shared_ptr<Sensor> sensor;
  std::shared_ptr<Clock> clock;
  Nanos least_interval{0};
  std::function<void()> on_reading;
  StopSignal stop;

  // Guards everything below.
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  bool started = false, stopped = false;
  std::uint64_t wanted = 0, begun = 0, done = 0;  // numbers of readings, from 1
  std::deque<Entry> kept;
  std::uint64_t first = 0;  // number of kept.front()
  std::optional<MonoTime> last_row;
  std::optional<Error> failure;
};

void Feed::State::run() {
  std::optional<MonoTime> last;
  for (;;) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopped || wanted > begun; });
      if (stopped) return;
    }
    if (last && !clock->sleep_until(*last + least_interval, stop)) return;
    {
      std::lock_guard lock(mutex);
      ++begun;
    }
    Readings readings;
    const MonoTime before = clock->now();
    last = before;
    const auto result = sensor->read(readings);
    const MonoTime after = clock->now();
    // Under the lock: after ~Feed nobody is told.
    std::lock_guard lock(mutex);
    if (stopped) return;
    keep(readings, result, before, after);
    done = begun;
    changed.notify_all();
    if (on_reading) on_reading();
  }
}

// As measure's Sampler: rows without a time get the middle of the read, a failed read leaves a row of missing values.
void Feed::State::keep(Readings& readings, const Result<void>& result, MonoTime before, MonoTime after) {
  const auto& info = sensor->info();
  for (auto& event : readings.events) {
    if (event.detail.size() > kLongestDetail) event.detail.resize(kLongestDetail);
    push({std::nullopt, std::move(event)});
  }
  if (!result && !info.own_time) readings.add(std::vector<std::optional<double>>(info.channels.size()));
  for (auto& row : readings.rows) {
    if (!info.own_time) row.t = before + (after - before) / 2;
    if ((last_row && row.t <= *last_row) || row.values.size() != info.channels.size()) continue;
    last_row = row.t;
    push({std::move(row), {}});
  }
  failure = result ? std::nullopt : std::optional(result.error());
}

void Feed::State::push(Entry entry) {
  kept.push_back(std::move(entry));
  if (kept.size() <= kKept) return;
  kept.pop_front();
  ++first;
}

Feed::Feed(std::shared_ptr<Sensor> sensor, std::shared_ptr<Clock> clock, Nanos least_interval,
           std::function<void()> on_reading)
    : state_(std::make_shared<State>()) {
  state_->sensor = std::move(sensor);
  state_->clock = std::move(clock);
  state_->least_interval = least_interval;
  state_->on_reading = std::move(on_reading);
}

Feed::~Feed() {
  state_->stop.request();
  std::lock_guard lock(state_->mutex);
  state_->stopped = true;
  state_->changed.notify_all();
}

const SensorInfo& Feed::info() const { return state_->sensor->info(); }

std::uint64_t Feed::ask() {
  std::lock_guard lock(state_->mutex);
  if (!std::exchange(state_->started, true)) std::thread([state = state_] { state->run(); }).detach();
  state_->wanted = state_->begun + 1;
  state_->changed.notify_all();
  return state_->wanted;
}

bool Feed::is_done(std::uint64_t ticket) const {
  std::lock_guard lock(state_->mutex);
  return state_->done >= ticket;
}

bool Feed::wait(std::uint64_t ticket, Nanos patience) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, patience, [&] { return state_->done >= ticket; });
}

std::uint64_t Feed::end() const {
  std::lock_guard lock(state_->mutex);
  return state_->first + state_->kept.size();
}

remote::Batch Feed::from(std::uint64_t cursor) const {
  const auto columns = std::max<std::size_t>(1, info().channels.size());
  const auto most_rows = std::max<std::size_t>(1, remote::kMostValues / columns);
  std::lock_guard lock(state_->mutex);
  const auto& s = *state_;
  const auto end = s.first + s.kept.size();
  remote::Batch batch;
  batch.cursor = std::clamp(cursor, s.first, end);
  // A cursor from the future is of an earlier daemon: it begins here.
  batch.lost = cursor < s.first ? s.first - cursor : 0;
  for (; batch.cursor < end; ++batch.cursor) {
    const auto& entry = s.kept[batch.cursor - s.first];
    if (batch.rows.size() == most_rows || batch.events.size() == remote::kMostEvents) break;
    if (entry.row)
      batch.rows.push_back(*entry.row);
    else
      batch.events.push_back(entry.event);
  }
  batch.more = batch.cursor < end;
  return batch;
}

std::optional<Error> Feed::failure() const {
  std::lock_guard lock(state_->mutex);
  return state_->failure;
}

}  // namespace ergometer::daemon
