// The two clocks of a measurement and the injectable Clock: real (SystemClock) or stepped in simulated time
// (SteppedClock). All intervals are monotonic; wall time only labels. Used by sensors, samplers and tests.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "base/units.hpp"

namespace ergometer {

// Tag clock for CLOCK_MONOTONIC time points; has no now() so that time is only taken from a Clock.
struct Monotonic {
  using duration = Nanos;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Monotonic>;
  static constexpr bool is_steady = true;
};
using MonoTime = Monotonic::time_point;                                          // nanoseconds since boot
using WallTime = std::chrono::time_point<std::chrono::system_clock, Nanos>;      // nanoseconds since the Unix epoch

constexpr std::int64_t to_ns(MonoTime t) { return t.time_since_epoch().count(); }
constexpr std::int64_t to_ns(WallTime t) { return t.time_since_epoch().count(); }
constexpr MonoTime mono_ns(std::int64_t ns) { return MonoTime(Nanos(ns)); }
constexpr WallTime wall_ns(std::int64_t ns) { return WallTime(Nanos(ns)); }

// Ends waits early. One StopSignal is shared by the threads of one owner; request() may be called from any thread.
class StopSignal {
 public:
  void request();
  bool requested() const;

 private:
  friend class SystemClock;
  friend class SteppedClock;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool requested_ = false;
  std::function<void()> on_request_;  // wakes a SteppedClock's sleepers
};

// Source of time. All members may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonoTime now() = 0;
  virtual WallTime wall() = 0;
  // Sleeps until `deadline` or until `stop` is requested. Returns false if stopped.
  virtual bool sleep_until(MonoTime deadline, StopSignal& stop) = 0;
  // Time that the machine has spent suspended since boot; monotonic time does not pass meanwhile.
  virtual Nanos suspended() { return Nanos{0}; }
  // How far the wall clock may be from UTC, as the kernel believes (adjtimex's maxerror); unset where nothing disciplines
  // it.
  virtual std::optional<Nanos> wall_error() { return std::nullopt; }
  // A thread that will sleep on this clock says so while it lives (see Participant); only a SteppedClock cares.
  virtual void join() {}
  virtual void leave() {}

  // The monotonic time at which the wall clock showed `t`, by the offset that holds now. Error: the time between
  // two clock reads (below 1 us), and any step of the wall clock since `t`.
  MonoTime to_mono(WallTime t) { return mono_ns(to_ns(t) - (to_ns(wall()) - to_ns(now()))); }
};

// Registers the calling thread with a Clock for its scope.
class Participant {
 public:
  explicit Participant(Clock& clock) : clock_(clock) { clock_.join(); }
  ~Participant() { clock_.leave(); }
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

 private:
  Clock& clock_;
};

// CLOCK_MONOTONIC and CLOCK_REALTIME.
class SystemClock final : public Clock {
 public:
  MonoTime now() override;
  WallTime wall() override;
  bool sleep_until(MonoTime deadline, StopSignal& stop) override;
  Nanos suspended() override;
  std::optional<Nanos> wall_error() override;
};

// Simulated time: it stands still while any participant works and jumps to the earliest deadline once all
// participants sleep. Deterministic up to the order of equal deadlines. `on_advance` (may be empty) is called
// with the new time before anyone wakes, e.g. to set the time of a fake driver.
class SteppedClock final : public Clock {
 public:
  explicit SteppedClock(MonoTime start, WallTime wall_start, std::function<void(MonoTime)> on_advance = {});
  MonoTime now() override;
  WallTime wall() override;
  bool sleep_until(MonoTime deadline, StopSignal& stop) override;
  Nanos suspended() override;
  void join() override;
  void leave() override;
  // Moves the wall clock by `step` (a correction by NTP or by hand); monotonic time is unaffected.
  void step_wall(Nanos step);
  // Lets the machine sleep for `length`: wall time passes, monotonic time does not.
  void suspend(Nanos length);

 private:
  // Each sleeper is woken by itself: with many threads, waking all at each step would cost more than their work.
  struct Sleeper {
    const StopSignal* stop = nullptr;
    std::condition_variable wake;
    bool awake = false, stopped = false;
  };
  using Sleepers = std::multimap<MonoTime, Sleeper*>;
  void advance_if_all_sleep();
  Sleepers::iterator rouse(Sleepers::iterator at, bool stopped);
  void rouse_stopped(const StopSignal& stop);

  std::mutex mutex_;
  MonoTime now_;
  Nanos wall_offset_;
  Nanos suspended_{0};
  Sleepers sleepers_;
  int participants_ = 0;
  std::function<void(MonoTime)> on_advance_;
};

}  // namespace ergometer
