// Sampler: polls one Sensor, or several that share a thread (Sensor::thread), at absolute deadlines, stamps each read
// before and after, and hands rows and events on. Used by Session alone; a slow or stuck sensor delays nobody outside
// its thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "device/sensor.hpp"

namespace ergometer {

// Where a Sampler puts what it reads. Both are called on the sampler's thread, never after abandon().
struct SamplerSink {
  std::function<void(std::span<const Row>)> rows;
  std::function<void(const Event&)> event;
};

struct SamplerCounts {
  std::int64_t reads = 0;   // calls of Sensor::read
  std::int64_t rows = 0;    // rows handed on
  std::int64_t errors = 0;  // reads that failed
  std::int64_t late = 0;    // ticks that were served late, by at most one interval
  std::int64_t missed = 0;  // ticks that were skipped because more than one interval had passed
};

// One sensor to poll. `on_first`, if any, is called on the sampler's thread after the first read, whatever its outcome.
struct Polled {
  std::shared_ptr<Sensor> sensor;
  SamplerSink sink;
  std::function<void()> on_first;
};

// A sensor whose thread never came back, and when it last ended a read.
struct StuckSensor {
  std::string name;
  MonoTime since;
};

// Reads each sensor at `origin` + k * interval (so that sensors of one interval wake together), first at once and last
// at stop.
// - Rows not later than the last one handed on are dropped.
// - Ticks that passed while a read took long or the machine did not run are skipped; each episode becomes one event,
//   `late` with the count, or `gap` if it was longer than max(2 s, 5 intervals).
// - A failing read becomes one event (`lost`, else `gap`) when the failure begins or changes its kind, and one row of
//   missing values a try, unless rows carry the device's own time. Tries become slower, up to every 5 s; the first
//   success gives a `back` event.
class Sampler {
 public:
  // At least one sensor. `on_done` is called when the thread has finished: also long after abandon(), so it must own
  // what it touches, as must the others. The thread keeps sensors, clock and its own state alive beyond this object.
  Sampler(std::vector<Polled> sensors, std::shared_ptr<Clock> clock, MonoTime origin, std::function<void()> on_done);
  // Stops, and leaves a stuck thread behind.
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Asks for the last reading and the end; returns at once.
  void request_stop();
  [[nodiscard]] bool finished() const;
  // Waits for a finished thread (at once) or cuts off a stuck one: nothing of the sink is touched after this call.
  // Returns the sensors of a stuck thread.
  std::vector<StuckSensor> abandon();
  // Of sensor number `sensor`.
  [[nodiscard]] SamplerCounts counts(std::size_t sensor = 0) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ergometer
