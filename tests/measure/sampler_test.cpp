#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "measure/scripted_sensor.hpp"

namespace ergometer {
namespace {

using namespace std::chrono_literals;
using test::Kept;
using test::ScriptedSensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr MonoTime kStart = mono_ns(1'000'000'000'000);

double at_s(MonoTime t) { return seconds(t - kStart); }

// A sampler in simulated time that runs for `length`, then stops in order.
struct Simulation {
  explicit Simulation(Nanos interval, ScriptedSensor::Script script, bool own_time = false)
      : sensor(std::make_shared<ScriptedSensor>(clock, interval, std::move(script), own_time)) {}

  SamplerCounts run(Nanos length) {
    const Participant self(*clock);
    StopSignal never, done;
    Sampler sampler({{sensor, kept.sink(), {}}}, clock, kStart, [&done] { done.request(); });
    clock->sleep_until(kStart + length, never);
    sampler.request_stop();
    clock->sleep_until(clock->now() + 3s, done);
    return sampler.counts();
  }

  std::shared_ptr<SteppedClock> clock = std::make_shared<SteppedClock>(kStart, wall_ns(0));
  std::shared_ptr<ScriptedSensor> sensor;
  Kept kept;
};

Result<void> give(Readings& out, double value) {
  out.add({value});
  return {};
}

TEST(Sampler, ReadsAtOnceAtEachTickAndAtTheEnd) {
  Simulation simulation(100ms, [](MonoTime, Readings& out) { return give(out, 1); });
  const auto counts = simulation.run(1050ms);
  std::vector<double> times;
  for (const auto& row : simulation.kept.rows) times.push_back(at_s(row.t));
  EXPECT_THAT(times, ElementsAre(0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.05));
  EXPECT_EQ(counts.reads, 12);
  EXPECT_EQ(counts.missed, 0);
  EXPECT_THAT(simulation.kept.events, IsEmpty());
}

TEST(Sampler, TicksStandOnTheOriginsGrid) {
  auto clock = std::make_shared<SteppedClock>(kStart + 30ms, wall_ns(0));
  auto sensor = std::make_shared<ScriptedSensor>(clock, 100ms, [](MonoTime, Readings& out) { return give(out, 1); });
  Kept kept;
  const Participant self(*clock);
  StopSignal never, done;
  Sampler sampler({{sensor, kept.sink(), {}}}, clock, kStart, [&done] { done.request(); });
  clock->sleep_until(kStart + 210ms, never);
  sampler.request_stop();
  clock->sleep_until(kStart + 3s, done);
  std::vector<double> times;
  for (const auto& row : kept.rows) times.push_back(at_s(row.t));
  EXPECT_THAT(times, ElementsAre(0.03, 0.1, 0.2, 0.21));
}

TEST(Sampler, RowHasTheMiddleAndTheWidthOfItsRead) {
  Simulation* self = nullptr;
  Simulation simulation(1s, [&self](MonoTime now, Readings& out) {
    StopSignal never;
    self->clock->sleep_until(now + 40ms, never);
    return give(out, 1);
  });
  self = &simulation;
  simulation.run(500ms);
  ASSERT_GE(simulation.kept.rows.size(), 1U);
  EXPECT_EQ(simulation.kept.rows[0].t, kStart + 20ms);
  EXPECT_EQ(simulation.kept.rows[0].read_width, Nanos(40ms));
}

TEST(Sampler, RowsOfABufferAreRecordedOnce) {
  // A device's buffer of its last five rows, 20 ms apart, handed out whole at each read.
  Simulation simulation(
      50ms,
      [](MonoTime now, Readings& out) -> Result<void> {
        const auto newest = (now - kStart) / 20ms;
        for (auto i = std::max<std::int64_t>(newest - 4, 0); i <= newest; ++i)
          out.add_at(kStart + i * 20ms, {static_cast<double>(i)});
        return {};
      },
      true);
  simulation.run(400ms);
  const auto& rows = simulation.kept.rows;
  ASSERT_EQ(rows.size(), 21U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].t, kStart + static_cast<int>(i) * 20ms);
    EXPECT_EQ(rows[i].read_width, Nanos{0});
  }
}

TEST(Sampler, F47_FailureIsMissingRowsWithTheirOwnTime) {
  Simulation simulation(1s, [](MonoTime now, Readings& out) -> Result<void> {
    if (now >= kStart + 10s) return fail(ErrorCode::lost, "GPU is lost");
    return give(out, 250);
  });
  const auto counts = simulation.run(20s);
  auto& kept = simulation.kept;
  ASSERT_GT(kept.rows.size(), 11U);
  for (const auto& row : kept.rows) {
    const bool good = row.t < kStart + 10s;
    EXPECT_EQ(row.values[0], good ? std::optional<double>(250) : std::nullopt) << at_s(row.t);
  }
  EXPECT_THAT(kept.kinds(), ElementsAre("lost"));
  EXPECT_EQ(kept.events[0].t, kStart + 10s);
  EXPECT_EQ(kept.events[0].detail, "GPU is lost");
  EXPECT_EQ(counts.reads - counts.errors, 10);
}

TEST(Sampler, F48_SlowTriesWhileGoneAndBackOnce) {
  Simulation simulation(100ms, [](MonoTime now, Readings& out) -> Result<void> {
    if (now >= kStart + 30s && now < kStart + 90s) return fail(ErrorCode::unavailable, "unknown error");
    return give(out, 100);
  });
  const auto counts = simulation.run(120s);
  auto& kept = simulation.kept;
  EXPECT_THAT(kept.kinds(), ElementsAre("gap", "back"));
  EXPECT_EQ(kept.events[0].t, kStart + 30s);
  EXPECT_THAT(kept.events[1].detail, HasSubstr("60.0 s"));
  EXPECT_LE(counts.errors, 36);
  EXPECT_GE(counts.errors, 12);
  // At full rate again after it came back: 300 good rows before, 300 after, and the last.
  EXPECT_NEAR(static_cast<double>(counts.reads - counts.errors), 601, 1);
}

TEST(Sampler, AFailureThatChangesItsKindIsToldAgain) {
  Simulation simulation(1s, [](MonoTime now, Readings&) -> Result<void> {
    if (now < kStart + 20s) return fail(ErrorCode::unavailable, "busy");
    return fail(ErrorCode::lost, "gone");
  });
  simulation.run(60s);
  EXPECT_THAT(simulation.kept.kinds(), ElementsAre("gap", "lost"));
}

TEST(Sampler, FailureOfADeviceBufferLeavesItsRowsToComeLater) {
  Simulation simulation(
      500ms,
      [](MonoTime now, Readings& out) -> Result<void> {
        if (now == kStart + 1s) return fail(ErrorCode::unavailable, "busy");
        for (int i = 0; kStart + i * 100ms <= now; ++i) out.add_at(kStart + i * 100ms, {1.0});
        return {};
      },
      true);
  simulation.run(3s);
  EXPECT_EQ(simulation.kept.rows.size(), 31U);
}

TEST(Sampler, F56_NotRunForALongTime) {
  Simulation* self = nullptr;
  Simulation simulation(1s, [&self](MonoTime now, Readings& out) {
    StopSignal never;
    // Reads at 0, 1 and 2 s; the next one comes through only at 167 s.
    if (now == kStart + 3s) self->clock->sleep_until(kStart + 167s, never);
    return give(out, 100);
  });
  self = &simulation;
  const auto counts = simulation.run(170s);
  auto& kept = simulation.kept;
  ASSERT_THAT(kept.kinds(), ElementsAre("gap"));
  EXPECT_EQ(kept.events[0].t, kStart + 2s);
  EXPECT_THAT(kept.events[0].detail, HasSubstr("165.000 s"));
  EXPECT_EQ(counts.missed, 164);
  EXPECT_EQ(counts.errors, 0);
}

TEST(Sampler, LateTicksAreOneEventAnEpisode) {
  Simulation* self = nullptr;
  Simulation simulation(100ms, [&self](MonoTime now, Readings& out) {
    StopSignal never;
    // Each read between 1 s and 2 s takes 250 ms: two ticks pass each time.
    if (now >= kStart + 1s && now < kStart + 2s) self->clock->sleep_until(now + 250ms, never);
    return give(out, 1);
  });
  self = &simulation;
  const auto counts = simulation.run(4s);
  ASSERT_THAT(simulation.kept.kinds(), ElementsAre("late"));
  EXPECT_THAT(simulation.kept.events[0].detail, HasSubstr("8 ticks missed"));
  EXPECT_EQ(counts.missed, 8);
}

TEST(Sampler, F52_StuckReadIsLeftBehind) {
  // A driver call that sleeps for longer than the test waits, then touches a sink that is long gone.
  std::weak_ptr<ScriptedSensor> sensor;
  auto clock = std::make_shared<SteppedClock>(kStart, wall_ns(0));
  {
    Kept kept;
    const Participant self(*clock);
    auto done = std::make_shared<StopSignal>();
    StopSignal never;
    auto stuck = std::make_shared<ScriptedSensor>(clock, 1s, [clock](MonoTime now, Readings& out) -> Result<void> {
      StopSignal never_stopped;
      if (now == kStart + 4s) clock->sleep_until(now + 30s, never_stopped);
      out.add({1.0});
      return {};
    });
    sensor = stuck;
    Sampler sampler({{std::move(stuck), kept.sink(), {}}}, clock, kStart, [done] { done->request(); });
    clock->sleep_until(kStart + 20s, never);
    sampler.request_stop();
    EXPECT_TRUE(clock->sleep_until(clock->now() + 3s, *done)) << "must still be stuck";
    const auto left = sampler.abandon();
    ASSERT_EQ(left.size(), 1U);
    EXPECT_EQ(left[0].name, "scripted");
    EXPECT_EQ(left[0].since, kStart + 3s);
    EXPECT_EQ(kept.rows.size(), 4U);
  }
  // Its thread ends by itself once the driver answers, and its state with it.
  StopSignal never;
  clock->sleep_until(kStart + 60s, never);
  for (int i = 0; i < 500 && !sensor.expired(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(sensor.expired());
}

TEST(Sampler, SensorsOfOneThreadKeepTheirOwnTicksAndFailures) {
  auto clock = std::make_shared<SteppedClock>(kStart, wall_ns(0));
  Kept fast_kept, slow_kept;
  auto fast = std::make_shared<ScriptedSensor>(clock, 100ms, [](MonoTime, Readings& out) { return give(out, 1); });
  auto slow = std::make_shared<ScriptedSensor>(clock, 250ms, [](MonoTime now, Readings& out) -> Result<void> {
    if (now == kStart + 250ms) return fail(ErrorCode::lost, "gone");
    return give(out, 2);
  });
  int first_reads = 0;
  const auto count = [&first_reads] { ++first_reads; };
  const Participant self(*clock);
  StopSignal never, done;
  Sampler sampler({{fast, fast_kept.sink(), count}, {slow, slow_kept.sink(), count}}, clock, kStart,
                  [&done] { done.request(); });
  clock->sleep_until(kStart + 520ms, never);
  sampler.request_stop();
  clock->sleep_until(kStart + 3s, done);
  EXPECT_THAT(sampler.abandon(), IsEmpty());
  EXPECT_EQ(first_reads, 2);
  std::vector<double> times;
  for (const auto& row : fast_kept.rows) times.push_back(at_s(row.t));
  EXPECT_THAT(times, ElementsAre(0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.52));
  EXPECT_THAT(fast_kept.events, IsEmpty());
  times.clear();
  for (const auto& row : slow_kept.rows) times.push_back(at_s(row.t));
  EXPECT_THAT(times, ElementsAre(0, 0.25, 0.5, 0.52));  // after a failure it is tried half as often
  EXPECT_EQ(sampler.counts(1).errors, 1);
  EXPECT_EQ(sampler.counts(0).errors, 0);
}

TEST(Sampler, AStuckThreadLeavesAllItsSensorsBehind) {
  auto clock = std::make_shared<SteppedClock>(kStart, wall_ns(0));
  Kept a_kept, b_kept;
  auto a = std::make_shared<ScriptedSensor>(clock, 1s, [](MonoTime, Readings& out) { return give(out, 1); });
  auto b = std::make_shared<ScriptedSensor>(clock, 1s, [clock](MonoTime now, Readings& out) -> Result<void> {
    StopSignal never_stopped;
    if (now == kStart + 2s) clock->sleep_until(now + 30s, never_stopped);
    return give(out, 2);
  });
  const Participant self(*clock);
  auto done = std::make_shared<StopSignal>();
  StopSignal never;
  Sampler sampler({{a, a_kept.sink(), {}}, {b, b_kept.sink(), {}}}, clock, kStart, [done] { done->request(); });
  clock->sleep_until(kStart + 10s, never);
  sampler.request_stop();
  EXPECT_TRUE(clock->sleep_until(clock->now() + 3s, *done)) << "must still be stuck";
  const auto left = sampler.abandon();
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].since, kStart + 2s);
  EXPECT_EQ(left[1].since, kStart + 1s);
  EXPECT_EQ(a_kept.rows.size(), 3U);
  EXPECT_EQ(b_kept.rows.size(), 2U);
  clock->sleep_until(kStart + 60s, never);
}

TEST(Sampler, EventsOfTheSensorBearItsName) {
  Simulation simulation(1s, [](MonoTime, Readings& out) {
    out.event("throttle", "power cap");
    return give(out, 1);
  });
  simulation.run(0s);
  ASSERT_FALSE(simulation.kept.events.empty());
  EXPECT_EQ(simulation.kept.events[0].source, "scripted");
  EXPECT_EQ(simulation.kept.events[0].kind, "throttle");
}

}  // namespace
}  // namespace ergometer
