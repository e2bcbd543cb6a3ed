#include "base/clock.hpp"

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

void SteppedClock::join() {
  std::lock_guard lock(mutex_);
  ++participants_;
}

void SteppedClock::leave() {
  std::unique_lock lock(mutex_);
  --participants_;
  advance_if_all_sleep(lock);
}

void SteppedClock::advance_if_all_sleep(std::unique_lock<std::mutex>&) {
  if (sleepers_.empty() || sleeping_ < participants_) return;
  const MonoTime next = sleepers_.begin()->first;
  if (next > now_) {
    now_ = next;
    if (on_advance_) on_advance_(now_);
  }
  // Those whose time has come count as awake from this moment, before they are scheduled, so that time cannot
  // run past them.
  while (!sleepers_.empty() && sleepers_.begin()->first <= now_) {
    sleepers_.erase(sleepers_.begin());
    --sleeping_;
  }
  changed_.notify_all();
}

bool SteppedClock::sleep_until(MonoTime deadline, StopSignal& stop) {
  {
    std::lock_guard stop_lock(stop.mutex_);
    if (stop.requested_) return false;
    stop.on_request_ = [this] {
      std::lock_guard lock(mutex_);
      changed_.notify_all();
    };
  }
  std::unique_lock lock(mutex_);
  if (deadline <= now_) return true;
  const auto self = sleepers_.emplace(deadline, &stop);
  ++sleeping_;
  advance_if_all_sleep(lock);
  bool stopped = false;
  changed_.wait(lock, [&] {
    if (now_ >= deadline) return true;
    stopped = stop.requested();
    return stopped;
  });
  if (stopped && now_ < deadline) {
    sleepers_.erase(self);
    --sleeping_;
    return false;
  }
  return true;
}

}  // namespace ergometer
