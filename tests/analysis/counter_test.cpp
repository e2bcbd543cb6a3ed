#include "analysis/counter.hpp"

#include <gmock/gmock.h>

#include "analysis/build_run.hpp"

namespace ergometer::test {
namespace {

using std::chrono::seconds;
constexpr double kRange = 262143.328850;
constexpr double kSmallRange = 65532.610987;

Readings micro(std::initializer_list<std::pair<double, double>> uj) {
  Readings out;
  for (const auto& [t, v] : uj) out.push_back({t, v * 1e-6});
  return out;
}

Summary of_package(const Readings& readings, double end, std::optional<double> range) {
  return summarise(run_of(0, end), {trace("rapl", counter("package/0", Scope::package, range), readings)});
}

TEST(Counter, F01_OneWrap) {
  const auto step = counter_step(262140.0, 1.0, seconds(1), {kRange, std::nullopt});
  EXPECT_EQ(step.kind, StepKind::wrapped);
  EXPECT_NEAR(step.delta.value(), 4.328850, 1e-6);
  const auto s = of_package(micro({{0, 262140000000}, {1, 1000000}}), 1, kRange);
  EXPECT_NEAR(s.run.energy_j.value(), 4.328850, 1e-6);
  EXPECT_NEAR(domain(s, "package/0").mean_power_w.value(), 4.328850, 1e-6);
}

TEST(Counter, F03_PolledFeedIsExact) {
  const auto s = of_package(micro({{0, 60000000000},
                                   {60, 9467389013},
                                   {120, 24467389013},
                                   {180, 39467389013},
                                   {240, 54467389013},
                                   {300, 3934778026},
                                   {360, 18934778026},
                                   {420, 33934778026},
                                   {480, 48934778026},
                                   {540, 63934778026},
                                   {600, 13402167039}}),
                            600, kSmallRange);
  EXPECT_NEAR(s.run.energy_j.value(), 150000.0, 1e-6);
  EXPECT_NEAR(domain(s, "package/0").mean_power_w.value(), 250.0, 1e-9);
  EXPECT_EQ(count_warnings(s, "counter-ambiguous"), 0u);
}

TEST(Counter, F03_TwoReadingsFarApartAreAmbiguous) {
  const auto s = of_package(micro({{0, 60000000000}, {600, 13402167039}}), 600, kSmallRange);
  EXPECT_FALSE(s.run.energy_j.has_value());
  EXPECT_FALSE(domain(s, "package/0").energy_j.has_value());
  EXPECT_EQ(count_warnings(s, "counter-ambiguous"), 1u);
  EXPECT_THAT(warning_text(s, "counter-ambiguous"), testing::HasSubstr("18934.778026 J plus whole multiples of "
                                                                       "65532.610987 J"));
}

TEST(Counter, F03_ARisingStepOverTooLongIsAmbiguousToo) {
  EXPECT_EQ(counter_step(100, 200, seconds(600), {kSmallRange, std::nullopt}).kind, StepKind::ambiguous);
  EXPECT_EQ(counter_step(100, 200, seconds(600), {std::nullopt, std::nullopt}).kind, StepKind::normal);
}

TEST(Counter, F04_OnlyOneOfSeveralZonesWraps) {
  const auto s =
      summarise(run_of(0, 1),
                {trace("a", counter("package/0", Scope::package, kRange), micro({{0, 1000000000}, {1, 1050000000}})),
                 trace("b", counter("dram/0", Scope::dram, 65712.999613), micro({{0, 65712000000}, {1, 10000000}}))});
  EXPECT_NEAR(domain(s, "package/0").energy_j.value(), 50.0, 1e-6);
  EXPECT_NEAR(domain(s, "dram/0").energy_j.value(), 10.999613, 1e-6);
  EXPECT_NEAR(s.run.energy_j.value(), 60.999613, 1e-6);
  EXPECT_LT(domain(s, "package/0").max_power_w.value(), 100.0);
  EXPECT_LT(domain(s, "dram/0").max_power_w.value(), 100.0);
}

TEST(Counter, F05_SumOfCorrectedSteps) {
  const auto s = of_package(micro({{0, 100000000000}, {500, 200000000000}, {1000, 37856671150}}), 1000, kRange);
  EXPECT_NEAR(s.run.energy_j.value(), 200000.0, 1e-6);
  EXPECT_NEAR(domain(s, "package/0").mean_power_w.value(), 200.0, 1e-9);
}

TEST(Counter, F06_RestartIsAReset) {
  const auto s =
      summarise(run_of(0, 3),
                {trace("gpu0-energy", counter("gpu/0", Scope::gpu), {{0, 9000.0}, {1, 9050.0}, {2, 12.0}, {3, 62.0}})});
  EXPECT_DOUBLE_EQ(s.run.energy_j.value(), 100.0);
  EXPECT_NEAR(domain(s, "gpu/0").coverage, 2.0 / 3.0, 1e-12);
  EXPECT_TRUE(s.run.partial);
  EXPECT_EQ(count_warnings(s, "counter-reset"), 1u);
}

TEST(Counter, F06_ResetIsFilledFromThePowerChannel) {
  const auto s =
      summarise(run_of(0, 3),
                {trace("gpu0-energy", counter("gpu/0", Scope::gpu), {{0, 9000.0}, {1, 9050.0}, {2, 12.0}, {3, 62.0}}),
                 trace("gpu0-average", power("gpu/0", Scope::gpu, Method::average), constant(40.0, 0, 3))});
  const auto& gpu = domain(s, "gpu/0");
  EXPECT_EQ(gpu.method, Method::counter);
  EXPECT_DOUBLE_EQ(gpu.energy_j.value(), 140.0);
  EXPECT_DOUBLE_EQ(gpu.filled_j.value(), 40.0);
  EXPECT_DOUBLE_EQ(gpu.coverage, 1.0);
  EXPECT_FALSE(s.run.partial);
}

TEST(Counter, ImplausibleWrapIsAReset) {
  // Once round would mean 26 kW for ten seconds.
  const auto step = counter_step(10.0, 5.0, seconds(10), {kRange, std::nullopt});
  EXPECT_EQ(step.kind, StepKind::reset);
  EXPECT_FALSE(step.delta.has_value());
  // A reading above the stated range shows that the range is wrong.
  EXPECT_EQ(counter_step(300000.0, 1.0, seconds(1), {kRange, std::nullopt}).kind, StepKind::reset);
}

TEST(Counter, F08_MillijoulesBecameJoulesOnce) {
  const auto s = summarise(run_of(0, 60), {trace("e", counter("gpu/0", Scope::gpu), {{0, 1000.0}, {60, 17522.288}}),
                                           trace("p", power("gpu/0", Scope::gpu), {{0, 285.432}, {60, 285.432}}, 60)});
  const auto& gpu = domain(s, "gpu/0");
  EXPECT_EQ(gpu.method, Method::counter);
  EXPECT_NEAR(gpu.energy_j.value(), 16522.288, 1e-9);
  EXPECT_NEAR(gpu.mean_power_w.value(), 275.371, 1e-3);
}

TEST(Counter, F09_EnergyIsPowerTimesDuration) {
  const auto s = of_package({{0, 0.0}, {100, 12000.0}}, 100, std::nullopt);
  EXPECT_DOUBLE_EQ(s.run.energy_j.value(), 12000.0);
  EXPECT_DOUBLE_EQ(s.run.duration_s.value(), 100.0);
  EXPECT_DOUBLE_EQ(domain(s, "package/0").mean_power_w.value(), 120.0);
}

TEST(Counter, F11_PowerIsPerRealInterval) {
  const auto s = summarise(
      run_of(0, 1.3), {trace("h", counter("package/0", Scope::package), {{0, 0.0}, {0.5, 100.0}, {1.3, 200.0}}, 0.5)},
      {region("a", 0, 0.5), region("b", 0.5, 1.3)});
  EXPECT_DOUBLE_EQ(s.run.energy_j.value(), 200.0);
  EXPECT_DOUBLE_EQ(domain(s, "package/0").max_power_w.value(), 200.0);
  EXPECT_NEAR(s.regions.at(0).domains.at(0).mean_power_w.value(), 200.0, 1e-9);
  EXPECT_NEAR(s.regions.at(1).domains.at(0).mean_power_w.value(), 125.0, 1e-9);
}

TEST(Counter, F20_NoGpuAndAGpuThatUsedNothingDiffer) {
  const Trace cpu = trace("rapl", counter("package/0", Scope::package), {{0, 5.0}, {1, 15.0}});
  const auto without = summarise(run_of(0, 1), {cpu});
  EXPECT_DOUBLE_EQ(without.run.energy_j.value(), 10.0);
  EXPECT_FALSE(domain(without, "gpu/0").energy_j.has_value());
  const auto idle =
      summarise(run_of(0, 1), {cpu, trace("gpu0-energy", counter("gpu/0", Scope::gpu), {{0, 7.0}, {1, 7.0}})});
  EXPECT_DOUBLE_EQ(idle.run.energy_j.value(), 10.0);
  EXPECT_EQ(domain(idle, "gpu/0").energy_j, 0.0);
}

TEST(Counter, F28_StuckCounterIsNotZeroJoules) {
  Readings moving = readings_of([](double t) { return 50 + 5 * t; }, 0, 20, 1);
  Trace spare = trace("rapl-powercap", counter("package/0", Scope::package), moving);
  spare.info.channels[0].in_total = false;  // a duplicate, as long as the other works
  const Trace stuck = trace("rapl-perf", counter("package/0", Scope::package), constant(7, 0, 20));
  const auto s = summarise(run_of(0, 20), {stuck, spare});
  EXPECT_DOUBLE_EQ(domain(s, "package/0").energy_j.value(), 100.0);
  EXPECT_DOUBLE_EQ(s.run.energy_j.value(), 100.0);
  EXPECT_EQ(count_warnings(s, "sensor-stuck"), 1u);
  const auto alone = summarise(run_of(0, 20), {stuck});
  EXPECT_FALSE(alone.run.energy_j.has_value());
  EXPECT_EQ(count_warnings(alone, "sensor-stuck"), 1u);
}

TEST(Counter, F58_DifferenceOverTheWholeInterval) {
  const auto s = of_package({{0, 0.0}, {0.01, 0.05}, {15, 750.0}}, 15, std::nullopt);
  EXPECT_DOUBLE_EQ(s.run.energy_j.value(), 750.0);
  EXPECT_DOUBLE_EQ(domain(s, "package/0").mean_power_w.value(), 50.0);
}

TEST(Counter, F113_NoUnderflow) {
  const auto s =
      summarise(run_of(0, 6), {trace("e", counter("gpu/0", Scope::gpu), {{0, 142.985}, {3, 73.592}, {6, 173.592}}, 3)},
                {region("first", 0, 3), region("second", 3, 6)});
  EXPECT_FALSE(s.regions.at(0).energy_j.has_value());
  EXPECT_NEAR(s.regions.at(1).energy_j.value(), 100.0, 1e-9);
  EXPECT_NEAR(s.run.energy_j.value(), 100.0, 1e-9);
}

TEST(Counter, F130_MeanPeakAndLastAreThreeNumbers) {
  const auto s = of_package({{0, 0.0}, {1, 300.0}, {2, 600.0}, {3, 900.0}, {4, 950.0}}, 4, std::nullopt);
  const auto& d = domain(s, "package/0");
  EXPECT_DOUBLE_EQ(d.energy_j.value(), 950.0);
  EXPECT_DOUBLE_EQ(d.mean_power_w.value(), 237.5);
  EXPECT_DOUBLE_EQ(d.max_power_w.value(), 300.0);
  EXPECT_DOUBLE_EQ(d.last_power_w.value(), 50.0);
}

}  // namespace
}  // namespace ergometer::test
