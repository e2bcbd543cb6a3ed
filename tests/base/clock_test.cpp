#include "base/clock.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace ergometer {
namespace {

using namespace std::chrono_literals;

constexpr MonoTime kStart = mono_ns(1'000);
constexpr WallTime kWall = wall_ns(5'000);

TEST(SystemClock, SleepsToItsDeadlineAndNoLess) {
  SystemClock clock;
  StopSignal stop;
  const MonoTime deadline = clock.now() + 5ms;
  EXPECT_TRUE(clock.sleep_until(deadline, stop));
  EXPECT_GE(clock.now(), deadline);
}

TEST(SystemClock, StopEndsASleep) {
  SystemClock clock;
  StopSignal stop;
  std::thread other([&] { stop.request(); });
  EXPECT_FALSE(clock.sleep_until(clock.now() + 1h, stop));
  other.join();
  EXPECT_FALSE(clock.sleep_until(clock.now() - 1s, stop)) << "stopped stays stopped";
}

TEST(SteppedClock, TimeStandsStillWhileOneWorks) {
  SteppedClock clock(kStart, kWall);
  const Participant self(clock);
  clock.join();  // of the thread below
  StopSignal never;
  std::thread other([&] {
    clock.sleep_until(kStart + 1h, never);
    clock.leave();
  });
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(clock.now(), kStart);
  EXPECT_TRUE(clock.sleep_until(kStart + 10s, never));
  EXPECT_EQ(clock.now(), kStart + 10s);
  EXPECT_TRUE(clock.sleep_until(kStart + 2h, never));
  other.join();
}

TEST(SteppedClock, ManyThreadsEachSeeAllTheirTicks) {
  std::vector<MonoTime> advanced;
  SteppedClock clock(kStart, kWall, [&](MonoTime t) { advanced.push_back(t); });
  std::vector<std::thread> threads;
  std::vector<int> ticks(8);
  for (std::size_t i = 0; i < ticks.size(); ++i) clock.join();
  for (std::size_t i = 0; i < ticks.size(); ++i)
    threads.emplace_back([&clock, &count = ticks[i]] {
      StopSignal never;
      for (int k = 1; k <= 500; ++k) {
        clock.sleep_until(kStart + k * 1s, never);
        count += clock.now() == kStart + k * 1s;
      }
      clock.leave();
    });
  for (auto& thread : threads) thread.join();
  for (const int count : ticks) EXPECT_EQ(count, 500);
  EXPECT_EQ(advanced.size(), 500U);
}

TEST(SteppedClock, StopWakesBeforeTheDeadlineAndHoldsTime) {
  SteppedClock clock(kStart, kWall);
  const Participant self(clock);
  StopSignal stop, never;
  clock.join();
  MonoTime woken{};
  bool slept = true;
  std::thread other([&] {
    slept = clock.sleep_until(kStart + 1h, stop);
    woken = clock.now();
    clock.leave();
  });
  clock.sleep_until(kStart + 1s, never);
  stop.request();
  other.join();
  EXPECT_FALSE(slept);
  EXPECT_EQ(woken, kStart + 1s) << "time may not run on before the stopped one has run";
}

TEST(SteppedClock, WallStepsAndSuspendLeaveMonotonicTimeAlone) {
  SteppedClock clock(kStart, kWall);
  clock.step_wall(-2s);
  EXPECT_EQ(clock.now(), kStart);
  EXPECT_EQ(clock.wall(), kWall - 2s);
  clock.suspend(10s);
  EXPECT_EQ(clock.now(), kStart);
  EXPECT_EQ(clock.wall(), kWall + 8s);
  EXPECT_EQ(clock.suspended(), Nanos(10s));
}

TEST(Clock, WallTimeToMonotonic) {
  SteppedClock clock(kStart, kWall);
  EXPECT_EQ(clock.to_mono(kWall - 100ns), kStart - 100ns);
}

}  // namespace
}  // namespace ergometer
