// Sums, differences, ratios and means of energies with shared errors; the rules of docs/method.md, section 7.
#include "analysis/combine.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "analysis/build_run.hpp"

namespace ergometer::test {
namespace {

DomainEnergy energy_of_gpu(double joules, UncertaintyParts parts) {
  DomainEnergy e;
  e.domain = "gpu/0";
  e.scope = Scope::gpu;
  e.energy_j = joules;
  e.parts = parts;
  e.uncertainty_j = half_width(parts);
  return e;
}

TEST(Combine, GainActsOnTheDifferenceOnly) {
  // generate 1000 J in 10 s, prefill 900 J in 9 s, gain 5 %, offset 2 W.
  const std::vector generate{energy_of_gpu(1000, {3, 0, 50, 20})}, prefill{energy_of_gpu(900, {4, 0, 45, 18})};
  const auto decode = difference(generate, 10, prefill, 9);
  EXPECT_DOUBLE_EQ(decode->value, 100);
  EXPECT_NEAR(decode->uncertainty, std::sqrt(9 + 16 + 5.0 * 5 + 2.0 * 2), 1e-9);
  const auto other_device = difference(generate, 10, prefill, 9, false);
  EXPECT_NEAR(other_device->uncertainty, std::sqrt(9 + 16 + 50.0 * 50 + 45.0 * 45 + 20 * 20 + 18 * 18), 1e-9);
  EXPECT_FALSE(difference(generate, 10, {}, 9).has_value());
}

TEST(Combine, Ratios) {
  EXPECT_DOUBLE_EQ(per({100, 5}, 50).uncertainty, 0.1);
  const auto r = ratio({100, 3}, {50, 2});
  EXPECT_DOUBLE_EQ(r.value, 2);
  EXPECT_NEAR(r.uncertainty, 2 * std::hypot(0.03, 0.04), 1e-12);
}

TEST(Combine, OffsetCancelsInNetEnergy) {
  const std::vector energies{energy_of_gpu(1000, {3, 4, 50, 200})};
  const auto net = net_energy(energies, {{60, 0.5, true}}, 10);
  EXPECT_DOUBLE_EQ(net->value, 400);
  EXPECT_NEAR(net->uncertainty, std::sqrt(9 + 16 + 5.0 * 5 + 20.0 * 20), 1e-9);
  EXPECT_FALSE(net_energy(energies, {{}}, 10).has_value());
}

Trace gpu_samples(double gain_tolerance) {
  Channel c = power("gpu/0", Scope::gpu, Method::samples);
  c.gain_tolerance = gain_tolerance;
  c.window = std::chrono::milliseconds(20);
  c.sampled_share = 1;
  return trace("s", c, constant(200, 0, 20, 0.02), 0.5, true);
}

TEST(Combine, GainIsOneFactorInSumsOfOneDevice) {
  const auto s = summarise(run_of(1, 19), {gpu_samples(0.05)}, {region("a", 2, 4), region("b", 4, 6)});
  for (const auto& r : s.regions) {
    EXPECT_NEAR(*r.energy_j, 400, 1e-6);
    EXPECT_NEAR(*r.uncertainty_j, 20, 0.1);
  }
  EXPECT_NEAR(*s.run.uncertainty_j, 0.05 * *s.run.energy_j, 0.5) << "not less by being longer";
}

TEST(Combine, NetEnergyAndWorkCarryTheirInterval) {
  Manifest m = run_of(10, 19);
  m.idle_before = Interval{at(1), at(9)};
  const auto s = summarise(m, {gpu_samples(0.05)}, {region("a", 12, 14, {{"samples", "40"}})});
  EXPECT_NEAR(*s.regions[0].net_energy_j, 0, 1e-6);
  EXPECT_NEAR(*s.regions[0].net_uncertainty_j, 0, 0.1) << "gain 5 % of nothing";
  EXPECT_NEAR(s.regions[0].metrics.at("energy_per_sample_j"), 10, 1e-6);
  EXPECT_NEAR(s.regions[0].metrics.at("energy_per_sample_j_uncertainty"), 0.5, 0.01);
}

TEST(Combine, GainAndOffsetAreAppliedToEnergyAndPower) {
  Trace t = gpu_samples(0.01);
  t.info.channels[0].gain = 1.1;
  t.info.channels[0].offset_w = -20;
  const auto s = summarise(run_of(1, 19), {t}, {region("a", 2, 4)});
  EXPECT_NEAR(*s.regions[0].energy_j, 400, 1e-6);
  EXPECT_NEAR(*domain(s, "gpu/0").max_power_w, 200, 1e-9);
  EXPECT_NEAR(*domain(s, "gpu/0").last_power_w, 200, 1e-9);
}

TEST(Combine, F59_ShortStepsArePooled) {
  std::vector<Region> steps;
  for (int i = 0; i < 100; ++i)
    steps.push_back(region("step[" + std::to_string(i) + "]", 1 + i * 0.137, 1 + i * 0.137 + 0.05));
  const auto p = [](double t) { return std::fmod(t - 1 + 1e-9, 0.137) < 0.05 ? 500.0 : 100.0; };
  Channel c = power("gpu/0", Scope::gpu, Method::integral);
  c.period = c.window = std::chrono::milliseconds(100);
  const auto s = summarise(run_of(0, 16), {trace("i", c, readings_of(p, 0, 16, 0.1), 0.1)}, steps);
  ASSERT_EQ(s.pooled.size(), 1u);
  EXPECT_EQ(s.pooled[0].path, "step");
  EXPECT_EQ(s.pooled[0].count, 100);
  EXPECT_NEAR(s.pooled[0].mean_duration_s, 0.05, 1e-9);
  EXPECT_GT(s.pooled[0].mean_energy_j, 0);
  double worst = 0;
  for (const auto& r : s.regions) worst = std::max(worst, *r.uncertainty_j);
  EXPECT_LT(s.pooled[0].uncertainty_j, worst);
}

TEST(Combine, PhaseLockIsNamed) {
  Channel c = power("gpu/0", Scope::gpu, Method::integral);
  c.period = std::chrono::milliseconds(100);
  c.window = std::chrono::milliseconds(25);
  c.sampled_share = 0.25;
  const auto run = [&](double length) {
    std::vector<Region> steps;
    for (int i = 0; i < 20; ++i)
      steps.push_back(region("step[" + std::to_string(i) + "]", 1 + i * length, 1 + (i + 1) * length));
    return summarise(run_of(0, 20), {trace("i", c, constant(300, 0, 20, 0.1), 0.1, true)}, steps);
  };
  EXPECT_THAT(warning_text(run(0.3), "phase-locked"), testing::HasSubstr("step begins each time at the same point"));
  EXPECT_EQ(count_warnings(run(0.337), "phase-locked"), 0u);
}

}  // namespace
}  // namespace ergometer::test
