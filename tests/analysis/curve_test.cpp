// Closed forms, gaps, edges and properties of the way from readings to joules.
#include "analysis/curve.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>
#include <random>
#include <tuple>

#include "analysis/build_run.hpp"

namespace ergometer::test {
namespace {

Summary of_gpu(const Readings& readings, const Manifest& manifest, std::vector<Region> regions = {},
               double interval = 1.0) {
  return summarise(manifest, {trace("gpu0", power("gpu/0", Scope::gpu), readings, interval)}, std::move(regions));
}

double energy(const Summary& s, std::size_t region) { return s.regions.at(region).energy_j.value(); }

TEST(Curve, ConstantPower) {
  const auto s = of_gpu(constant(120, 0, 10, 0.02), run_of(0, 10), {region("a", 1.234567, 4.765432)}, 0.02);
  EXPECT_NEAR(s.run.energy_j.value(), 1200.0, 1e-9);
  EXPECT_NEAR(energy(s, 0), 120 * (4.765432 - 1.234567), 1e-6);
  EXPECT_DOUBLE_EQ(s.regions.at(0).coverage, 1.0);
}

TEST(Curve, RampIsExactAlsoBetweenReadings) {
  const auto s =
      of_gpu(readings_of([](double t) { return 10 + 3 * t; }, 0, 20, 0.5), run_of(0, 20), {region("a", 3.3, 7.1)}, 0.5);
  const auto exact = [](double a, double b) { return 10 * (b - a) + 1.5 * (b * b - a * a); };
  EXPECT_NEAR(s.run.energy_j.value(), exact(0, 20), 1e-9);
  EXPECT_NEAR(energy(s, 0), exact(3.3, 7.1), 1e-6);
}

TEST(Curve, SineWithinItsOwnUncertainty) {
  const auto p = [](double t) { return 300 + 200 * std::sin(2 * std::numbers::pi * t / 2); };
  const auto integral = [](double t) { return 300 * t - 200 / std::numbers::pi * std::cos(std::numbers::pi * t); };
  const auto s =
      of_gpu(readings_of(p, 0, 20, 0.1), run_of(0, 20), {region("a", 0.33, 1.57), region("b", 5, 12.03)}, 0.1);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& r = s.regions[i];
    const double begin = r.t_begin_s, end = begin + r.duration_s;
    const double exact = integral(end) - integral(begin);
    EXPECT_NEAR(*r.energy_j, exact, 0.005 * exact);
    EXPECT_NEAR(*r.energy_j, exact, *r.uncertainty_j);
  }
}

TEST(Curve, SquareWaveErrsAtMostOneStepAnEdge) {
  const auto p = [](double t) { return std::fmod(t, 2.0) < 1.0 ? 500.0 : 100.0; };
  const auto s = of_gpu(readings_of(p, 0, 20, 0.02), run_of(0, 20), {region("high", 2, 3), region("low", 3, 4)}, 0.02);
  EXPECT_NEAR(energy(s, 0), 500, 400 * 0.02);
  EXPECT_NEAR(energy(s, 1), 100, 400 * 0.02);
  EXPECT_NEAR(energy(s, 0), 500, s.regions[0].uncertainty_j.value());
  EXPECT_NEAR(energy(s, 0) + energy(s, 1), 600, 400 * 0.02);
}

TEST(Curve, F15_TenSamples) {
  const auto s = of_gpu(constant(100, 0, 9), run_of(0, 10));
  EXPECT_NEAR(s.run.energy_j.value(), 1000.0, 100.0);
}

TEST(Curve, F17_IntegratedPowerIsNamed) {
  const auto s = of_gpu(constant(26, 0, 3600, 10), run_of(0, 3600), {}, 10);
  const auto& gpu = domain(s, "gpu/0");
  EXPECT_NEAR(gpu.energy_j.value(), 93600.0, 1e-6);
  EXPECT_DOUBLE_EQ(gpu.mean_power_w.value(), 26.0);
  EXPECT_EQ(gpu.method, Method::integral);
  EXPECT_TRUE(gpu.measured);
}

TEST(Curve, F47_NoReadingIsNoEnergy) {
  Readings readings = constant(250, 0.5, 9.5);
  for (int i = 10; i < 20; ++i) readings.push_back({i + 0.5, std::nullopt});
  const auto s = of_gpu(readings, run_of(0, 20));
  EXPECT_NEAR(s.run.energy_j.value(), 2500.0, 1e-9);
  EXPECT_NEAR(domain(s, "gpu/0").coverage, 0.5, 1e-9);
  EXPECT_TRUE(s.run.partial);
}

TEST(Curve, F56_CounterBridgesAGapPowerDoesNot) {
  const auto counted =
      summarise(run_of(0, 167),
                {trace("e", counter("package/0", Scope::package), {{0, 0.0}, {1, 100.0}, {2, 200.0}, {167, 16700.0}})});
  EXPECT_DOUBLE_EQ(counted.run.energy_j.value(), 16700.0);
  EXPECT_DOUBLE_EQ(domain(counted, "package/0").coverage, 1.0);
  EXPECT_FALSE(counted.run.partial);

  const auto integrated = of_gpu({{0, 100.0}, {1, 100.0}, {2, 100.0}, {167, 100.0}}, run_of(0, 167));
  const auto& gpu = domain(integrated, "gpu/0");
  EXPECT_DOUBLE_EQ(gpu.energy_j.value(), 200.0);
  EXPECT_DOUBLE_EQ(gpu.gap_j.value(), 16500.0);
  EXPECT_DOUBLE_EQ(gpu.longest_gap_s.value(), 165.0);
  EXPECT_NEAR(gpu.coverage, 2.0 / 167, 1e-12);
  EXPECT_THAT(warning_text(integrated, "sample-gap"), testing::HasSubstr("1 gap, the longest 165 s: up to 16500 J"));
}

TEST(Curve, F124_AreaUnderAGapIsNotMeasured) {
  Readings readings = constant(100, 0, 10);
  for (const auto& r : constant(100, 60, 70)) readings.push_back(r);
  const auto s = of_gpu(readings, run_of(0, 70), {region("gap", 20, 50), region("edge", 55, 65)});
  EXPECT_DOUBLE_EQ(s.run.energy_j.value(), 2000.0);
  EXPECT_DOUBLE_EQ(domain(s, "gpu/0").longest_gap_s.value(), 50.0);
  EXPECT_FALSE(s.regions.at(0).energy_j.has_value());
  EXPECT_DOUBLE_EQ(energy(s, 1), 500.0);
  EXPECT_DOUBLE_EQ(s.regions.at(1).coverage, 0.5);
}

TEST(Curve, F59_EpochsShorterThanTheInterval) {
  const std::vector<Region> epochs{region("epoch[0]", 0, 0.3), region("epoch[1]", 0.3, 0.6),
                                   region("epoch[2]", 0.6, 0.9)};
  const auto counted = summarise(
      run_of(0, 0.9),
      {trace("e", counter("package/0", Scope::package), {{0, 0.0}, {0.3, 30.0}, {0.6, 60.0}, {0.9, 90.0}})}, epochs);
  ASSERT_EQ(counted.regions.size(), 3u);
  for (const auto& r : counted.regions) {
    EXPECT_NEAR(r.energy_j.value(), 30.0, 1e-9);
    EXPECT_NEAR(r.domains.at(0).mean_power_w.value(), 100.0, 1e-9);
    EXPECT_FALSE(r.low_confidence);
  }
  const auto polled = of_gpu({{0, 100.0}, {1, 100.0}}, run_of(0, 0.9), epochs);
  ASSERT_EQ(polled.regions.size(), 3u);
  for (const auto& r : polled.regions) EXPECT_TRUE(r.low_confidence);
  EXPECT_EQ(count_warnings(polled, "below-resolution"), 1u);
}

TEST(Curve, F61_CounterIsPreferredToAverages) {
  Channel average = power("gpu/0", Scope::gpu, Method::average);
  average.window = std::chrono::seconds(1);
  Channel energy_counter = counter("gpu/0", Scope::gpu);
  energy_counter.period = std::chrono::milliseconds(100);
  const auto s = summarise(
      run_of(0, 10),
      {trace("average", average, constant(300, 0, 10, 0.1), 0.1),
       trace("instant", power("gpu/0", Scope::gpu),
             readings_of([](double t) { return std::fmod(t + 1e-9, 1.0) < 0.5 ? 500.0 : 100.0; }, 0, 10, 0.1), 0.1),
       trace("energy", energy_counter, readings_of([](double t) { return 300 * t; }, 0, 10, 0.1), 0.1)});
  const auto& gpu = domain(s, "gpu/0");
  EXPECT_EQ(gpu.method, Method::counter);
  EXPECT_NEAR(gpu.energy_j.value(), 3000.0, 1e-6);
  ASSERT_EQ(gpu.alternatives.size(), 2u);
  EXPECT_NEAR(gpu.alternatives[0].energy_j.value(), 3000.0, 1e-6);
  EXPECT_EQ(gpu.alternatives[0].method, Method::average);
  EXPECT_EQ(gpu.alternatives[1].method, Method::integral);
}

TEST(Curve, DriverSamplesBeatASlowCounterOnShortRegions) {
  Channel energy_counter = counter("gpu/0", Scope::gpu);
  energy_counter.period = std::chrono::milliseconds(100);
  const auto p = [](double t) { return t > 1.001 && t < 1.101 ? 700.0 : 120.0; };  // each shows the 20 ms before it
  const auto e = [](double t) { return 120 * std::floor(t * 10) / 10 + (t >= 1.1 ? 58.0 : 0.0); };
  const auto s =
      summarise(run_of(0, 3),
                {trace("samples", power("gpu/0", Scope::gpu, Method::samples), readings_of(p, 0, 3, 0.02), 0.5, true),
                 trace("energy", energy_counter, readings_of(e, 0, 3, 0.1), 0.1)},
                {region("burst", 1, 1.1)});
  EXPECT_EQ(s.regions.at(0).domains.at(0).method, Method::samples);
  EXPECT_NEAR(energy(s, 0), 70.0, s.regions[0].uncertainty_j.value());
}

TEST(Curve, ACounterReadFasterThanItMovesIsStale) {
  const auto stairs = [](double t) { return 300 * 0.1 * std::floor(t / 0.1 + 1e-9); };
  const auto fast =
      summarise(run_of(0, 10), {trace("e", counter("gpu/0", Scope::gpu), readings_of(stairs, 0, 10, 0.02), 0.02)});
  EXPECT_NEAR(domain(fast, "gpu/0").uncertainty_j.value(), std::hypot(30, 30), 1.0);
  EXPECT_NEAR(domain(fast, "gpu/0").max_power_w.value(), 300, 1e-6);
  const auto smooth =
      summarise(run_of(0, 10), {trace("e", counter("gpu/0", Scope::gpu), readings_of(stairs, 0, 10, 0.1), 0.1)});
  EXPECT_NEAR(domain(smooth, "gpu/0").uncertainty_j.value(), 0.0, 1e-6);
}

TEST(Curve, F116_MeanOfValidReadings) {
  const auto s = of_gpu({{0, 200.0}, {1, std::nullopt}, {2, 210.0}, {3, 205.0}}, run_of(-0.5, 3.5));
  EXPECT_NEAR(domain(s, "gpu/0").mean_power_w.value(), 205.0, 1e-9);
}

TEST(Curve, F128_OneSampleIsEnough) {
  const auto s = summarise(run_of(0, 1), {trace("cpu", power("package/0", Scope::package), {{0.5, 42.0}})});
  EXPECT_NEAR(s.run.energy_j.value(), 42.0, 1e-9);
  EXPECT_TRUE(s.run.valid);
}

TEST(Curve, OneCounterReadingIsNoEnergy) {
  const auto s = summarise(run_of(0, 1), {trace("e", counter("gpu/0", Scope::gpu), {{0.5, 42.0}})});
  EXPECT_FALSE(s.run.energy_j.has_value());
  EXPECT_FALSE(s.run.valid);
  EXPECT_EQ(count_warnings(s, "nothing-measured"), 1u);
}

TEST(Curve, DamagedReadingsAreLeftOut) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto s =
      of_gpu({{0, 100.0}, {0.5, inf}, {1, 100.0}, {1, 900.0}, {1.5, -5.0}, {2, 100.0}, {1.9, 700.0}, {3, 100.0}},
             run_of(0, 3));
  EXPECT_NEAR(s.run.energy_j.value(), 300.0, 1e-9);
  EXPECT_DOUBLE_EQ(domain(s, "gpu/0").max_power_w.value(), 100.0);
}

TEST(Curve, ExtremeTimesDoNotOverflow) {
  Trace t = trace("gpu0", power("gpu/0", Scope::gpu), {{0, 100.0}, {1, 100.0}});
  t.push(Row{mono_ns(INT64_MAX), Nanos{0}, {100.0}});
  t.t_ns.insert(t.t_ns.begin(), INT64_MIN);
  t.columns[0] = {};
  for (int i = 0; i < 4; ++i) t.columns[0].push(100.0);
  Region all;
  all.path = "all";
  all.begin = mono_ns(INT64_MIN);
  all.end = mono_ns(INT64_MAX);
  const auto s = summarise(run_of(0, 1), {t}, {all});
  EXPECT_DOUBLE_EQ(s.run.energy_j.value(), 100.0);
  EXPECT_DOUBLE_EQ(energy(s, 0), 200.0);
}

// Random traces, random unsorted regions.
class CurveProperty : public testing::TestWithParam<std::tuple<unsigned, bool>> {};

TEST_P(CurveProperty, AdjacentRegionsSumToTheWholeAndNothingIsNegative) {
  const auto [seed, as_counter] = GetParam();
  std::mt19937 random(seed);
  const auto uniform = [&](double a, double b) { return std::uniform_real_distribution<double>(a, b)(random); };
  Readings readings;
  double sum = 0;
  for (double t = uniform(0, 5); t < 100; t += uniform(0, 1) < 0.02 ? uniform(5, 20) : uniform(0.05, 0.15)) {
    sum += uniform(0, 10);
    readings.push_back({t, as_counter ? (uniform(0, 1) < 0.01 ? sum = 0 : sum) : uniform(0, 700)});
  }
  std::vector<double> cuts{0, 100};
  for (int i = 0; i < 200; ++i) cuts.push_back(uniform(0, 100));
  std::sort(cuts.begin(), cuts.end());
  std::vector<Region> regions;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
    regions.push_back(region("part[" + std::to_string(i) + "]", cuts[i], cuts[i + 1]));
  std::shuffle(regions.begin(), regions.end(), random);
  const Channel channel = as_counter ? counter("gpu/0", Scope::gpu) : power("gpu/0", Scope::gpu);
  const auto s = summarise(run_of(0, 100), {trace("s", channel, readings, 0.1)}, regions);
  double parts = 0;
  for (const auto& r : s.regions) {
    if (!r.energy_j) continue;
    EXPECT_GE(*r.energy_j, -1e-9);
    EXPECT_GE(r.uncertainty_j.value(), 0.0);
    EXPECT_LE(r.coverage, 1.0);
    parts += *r.energy_j;
  }
  EXPECT_NEAR(parts, s.run.energy_j.value(), 1e-5 * parts);
  EXPECT_TRUE(std::is_sorted(s.regions.begin(), s.regions.end(),
                             [](const auto& a, const auto& b) { return a.t_begin_s < b.t_begin_s; }));
}
INSTANTIATE_TEST_SUITE_P(Seeds, CurveProperty, testing::Combine(testing::Range(1u, 21u), testing::Bool()));

TEST(Curve, HighestOverManyBlocksIsTheTrueMaximum) {
  std::mt19937 random(7);
  Readings readings;
  for (int i = 0; i < 1000; ++i) readings.push_back({i * 0.1, std::uniform_real_distribution<double>(0, 700)(random)});
  std::vector<Region> regions;
  for (int i = 0; i < 50; ++i) {
    const double a = static_cast<double>(random() % 900) * 0.1, b = a + 0.1 * static_cast<double>(random() % 600 + 1);
    regions.push_back(region("r", a, b));
  }
  const auto s = of_gpu(readings, run_of(0, 100), regions, 0.1);
  for (const auto& r : s.regions) {
    double expected = 0;
    for (const auto& [t, v] : readings)
      if (t >= r.t_begin_s - 1e-10 && t <= r.t_begin_s + r.duration_s + 1e-10) expected = std::max(expected, *v);
    EXPECT_DOUBLE_EQ(r.domains.at(0).max_power_w.value(), expected);
  }
}

}  // namespace
}  // namespace ergometer::test
