#include "base/clock.hpp"

#include <sys/timex.h>

#include <ctime>

namespace ergometer {
namespace {
std::int64_t read_clock(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return static_cast<std::int64_t>(ts.tv_sec) * 1'000'000'000 + ts.tv_nsec;
}
}  // namespace

void StopSignal::request() {
  std::function<void()> wake;
  {
    std::lock_guard lock(mutex_);
    requested_ = true;
    wake = on_request_;
  }
  changed_.notify_all();
  if (wake) wake();
}

bool StopSignal::requested() const {
  std::lock_guard lock(mutex_);
  return requested_;
}

MonoTime SystemClock::now() { return mono_ns(read_clock(CLOCK_MONOTONIC)); }
WallTime SystemClock::wall() { return wall_ns(read_clock(CLOCK_REALTIME)); }

bool SystemClock::sleep_until(MonoTime deadline, StopSignal& stop) {
  // std::chrono::steady_clock is CLOCK_MONOTONIC in libstdc++, so the absolute deadline carries over unchanged.
  const std::chrono::steady_clock::time_point until(Nanos(to_ns(deadline)));
  std::unique_lock lock(stop.mutex_);
  return !stop.changed_.wait_until(lock, until, [&] { return stop.requested_; });
}

Nanos SystemClock::suspended() {
  // Read close together; CLOCK_BOOTTIME runs on while the machine sleeps.
  const auto mono = read_clock(CLOCK_MONOTONIC);
  return Nanos(read_clock(CLOCK_BOOTTIME) - mono);
}

SteppedClock::SteppedClock(MonoTime start, WallTime wall_start, std::function<void(MonoTime)> on_advance)
    : now_(start), wall_offset_(to_ns(wall_start) - to_ns(start)), on_advance_(std::move(on_advance)) {}

MonoTime SteppedClock::now() {
  std::lock_guard lock(mutex_);
  return now_;
}

WallTime SteppedClock::wall() {
  std::lock_guard lock(mutex_);
  return wall_ns(to_ns(now_) + wall_offset_.count());
}

void SteppedClock::step_wall(Nanos step) {
  std::lock_guard lock(mutex_);
  wall_offset_ += step;
}

void SteppedClock::suspend(Nanos length) {
  std::lock_guard lock(mutex_);
  wall_offset_ += length;
  suspended_ += length;
}

Nanos SteppedClock::suspended() {
  std::lock_guard lock(mutex_);
  return suspended_;
}

void SteppedClock::join() {
  std::lock_guard lock(mutex_);
  ++participants_;
}

void SteppedClock::leave() {
  std::lock_guard lock(mutex_);
  --participants_;
  advance_if_all_sleep();
}

std::optional<Nanos> SystemClock::wall_error() {
  timex state{};  // modes = 0: nothing is changed, so nobody needs a right
  const int answer = ::adjtimex(&state);
  if (answer < 0 || answer == TIME_ERROR || (state.status & STA_UNSYNC) != 0) return std::nullopt;
  return std::chrono::microseconds(state.maxerror);
}

// A sleeper counts as awake from this moment, before it is scheduled, so that time cannot run past it.
SteppedClock::Sleepers::iterator SteppedClock::rouse(Sleepers::iterator at, bool stopped) {
  at->second->awake = true;
  at->second->stopped = stopped;
  at->second->wake.notify_one();
  return sleepers_.erase(at);
}

void SteppedClock::rouse_stopped(const StopSignal& stop) {
  std::lock_guard lock(mutex_);
  for (auto at = sleepers_.begin(); at != sleepers_.end();) at = at->second->stop == &stop ? rouse(at, true) : ++at;
}

void SteppedClock::advance_if_all_sleep() {
  if (sleepers_.empty() || static_cast<int>(sleepers_.size()) < participants_) return;
  if (const MonoTime next = sleepers_.begin()->first; next > now_) {
    now_ = next;
    if (on_advance_) on_advance_(now_);
  }
  for (auto at = sleepers_.begin(); at != sleepers_.end() && at->first <= now_;) at = rouse(at, false);
}

bool SteppedClock::sleep_until(MonoTime deadline, StopSignal& stop) {
  {
    std::lock_guard stop_lock(stop.mutex_);
    stop.on_request_ = [this, &stop] { rouse_stopped(stop); };
  }
  std::unique_lock lock(mutex_);
  // A request after this look finds the sleeper in the list, since it needs the lock that is held here.
  if (stop.requested()) return false;
  if (deadline <= now_) return true;
  Sleeper self;
  self.stop = &stop;
  sleepers_.emplace(deadline, &self);
  advance_if_all_sleep();
  self.wake.wait(lock, [&] { return self.awake; });
  return !self.stopped;
}

}  // namespace ergometer
