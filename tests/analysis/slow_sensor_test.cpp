// Runs shorter than a sensor's period, and counters that never move: what a first run on an H200 in a virtual machine
// showed.
#include <gtest/gtest.h>

#include "analysis/build_run.hpp"

namespace ergometer {
namespace {

using namespace test;

Channel gpu_counter() {
  Channel c = counter("gpu/0", Scope::gpu);
  c.period = std::chrono::milliseconds(100);
  return c;
}

TEST(SlowSensor, CounterThatHadNoTimeToMoveLosesToPower) {
  // 30 ms at 100 W, seen by a counter of 100 ms (no step yet) and by samples of 10 ms.
  const auto s = summarise(run_of(0, 0.03), {trace("gpu0-energy", gpu_counter(), {{0, 5.0}, {0.03, 5.0}}, 0.03),
                                             trace("gpu0-samples", power("gpu/0", Scope::gpu, Method::samples),
                                                   constant(100, 0, 0.03, 0.01), 0.5, true)});
  const auto& gpu = domain(s, "gpu/0");
  EXPECT_EQ(gpu.method, Method::samples);
  EXPECT_NEAR(*gpu.energy_j, 3.0, 1e-9);
  EXPECT_EQ(count_warnings(s, "methods-disagree"), 0u) << "a slow channel is late by design";
}

TEST(SlowSensor, CounterAloneStatesHowLittleItKnows) {
  auto channel = gpu_counter();
  const auto s = summarise(run_of(0, 0.25),
                           {trace("gpu0-energy", channel, {{0, 0.0}, {0.1, 10.0}, {0.2, 20.0}, {0.3, 30.0}}, 0.1)});
  const auto& gpu = domain(s, "gpu/0");
  EXPECT_NEAR(*gpu.energy_j, 25.0, 1e-9);
  EXPECT_GE(*gpu.uncertainty_j, 10.0) << "one period at 100 W";
}

TEST(SlowSensor, MethodsThatDisagreeOverManyPeriodsAreNamed) {
  const auto s = summarise(
      run_of(0, 60),
      {trace("gpu0-energy", gpu_counter(), readings_of([](double t) { return 100 * t; }, 0, 60, 1)),
       trace("gpu0-samples", power("gpu/0", Scope::gpu, Method::samples), constant(50, 0, 60, 0.1), 0.5, true)});
  EXPECT_EQ(count_warnings(s, "methods-disagree"), 1u);
}

TEST(SlowSensor, F28_MeterThatNeverMovesHasNoValue) {
  for (const Scope scope : {Scope::package, Scope::psys}) {
    const auto s =
        summarise(run_of(0, 30), {trace("rapl", counter("part/0", scope), constant(0, 0, 30, 0.1), 0.1),
                                  trace("gpu0", power("gpu/0", Scope::gpu), constant(100, 0, 30, 0.1), 0.1)});
    EXPECT_EQ(domain(s, "part/0").energy_j, std::nullopt) << to_word(scope);
    EXPECT_EQ(count_warnings(s, "sensor-stuck"), 1u) << to_word(scope);
    EXPECT_NEAR(*s.run.energy_j, 3000, 1e-6);
  }
}

}  // namespace
}  // namespace ergometer
