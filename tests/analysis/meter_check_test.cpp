// The MLPerf rule between two sources, and the bound of what a slow meter cannot see.
#include "analysis/meter_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/build_run.hpp"

namespace ergometer::test {
namespace {

MeterCheck check(const Trace& a, const Trace& b) { return check_meter({&a, 0}, {&b, 0}); }

Trace meter(const std::function<double(double)>& f, double first, double last, double step = 1.0) {
  return trace("meter", power("node", Scope::node), readings_of(f, first, last, step), step);
}

// Idle, two loads: 100 W for 100 s, 400 W for 100 s, 700 W for 100 s.
double loads(double t) { return t < 100 ? 100 : t < 200 ? 400 : 700; }

TEST(MeterCheck, FiveMinutesThatAgree) {
  const auto result = check(meter([](double t) { return 1.04 * loads(t); }, 0, 310), meter(loads, 0, 310));
  EXPECT_EQ(result.missing, "");
  ASSERT_EQ(result.windows.size(), 5u);
  for (std::size_t i = 1; i < 5; ++i)
    EXPECT_GE(seconds(result.windows[i].begin - result.windows[i - 1].begin), 60.0) << "disjoint";
  EXPECT_NEAR(result.difference.value(), 0.04, 1e-9);
  EXPECT_TRUE(result.agrees());
}

TEST(MeterCheck, BeyondFivePerCentItFails) {
  const auto high = check(meter([](double t) { return 1.051 * loads(t); }, 0, 310), meter(loads, 0, 310));
  EXPECT_FALSE(high.agrees());
  EXPECT_EQ(high.missing, "");
  const auto low = check(meter([](double t) { return 0.949 * loads(t); }, 0, 310), meter(loads, 0, 310));
  EXPECT_FALSE(low.agrees());
  EXPECT_NEAR(low.difference.value(), -0.051, 1e-9);
}

TEST(MeterCheck, OlympicMeansLeaveOutTheHighestAndTheLowest) {
  EXPECT_EQ(olympic_mean({1, 100, 2, 3, 4}), 3.0);
  EXPECT_EQ(olympic_mean({5, 1}), std::nullopt);
  // One minute of the source is 50 % too high: it is that source's highest and left out.
  const auto odd = [](double t) { return t >= 120 && t < 180 ? 300.0 : 200.0; };
  const auto result = check(meter(odd, 0, 310), meter([](double) { return 200.0; }, 0, 310));
  ASSERT_TRUE(result.difference);
  EXPECT_LT(std::abs(*result.difference), 0.005);
}

TEST(MeterCheck, FewerThanFiveMinutesSayWhatIsMissing) {
  const auto result = check(meter(loads, 0, 250), meter(loads, 30, 280));
  EXPECT_EQ(result.minutes, 3u);
  EXPECT_FALSE(result.difference);
  EXPECT_FALSE(result.agrees());
  EXPECT_THAT(result.missing, testing::HasSubstr("3 of 5"));
  EXPECT_THAT(result.missing, testing::HasSubstr("220 s in common"));
  EXPECT_THAT(check(meter(loads, 0, 1), meter(loads, 500, 900)).missing, testing::HasSubstr("0 of 5"));
}

TEST(MeterCheck, ASourceReadMoreSlowlyThanOnceASecondHasNoVerdict) {
  const auto slow = trace("ipmi-dcmi", power("node", Scope::node), readings_of(loads, 0, 600, 2.0), 2.0);
  const auto result = check(slow, meter(loads, 0, 600));
  EXPECT_EQ(result.minutes, 0u);
  EXPECT_THAT(result.missing, testing::HasSubstr("ipmi-dcmi is read each 2 s"));
}

TEST(MeterCheck, AMinuteWithAGapDoesNotCount) {
  auto readings = readings_of(loads, 0, 315, 1.0);
  std::erase_if(readings, [](const auto& r) { return r.first > 130 && r.first < 150; });
  const auto holed = trace("meter", power("node", Scope::node), readings);
  const auto result = check(holed, meter(loads, 0, 315));
  EXPECT_EQ(result.minutes, 4u);
  for (const auto& w : result.windows) {
    const double begin = seconds(w.begin.time_since_epoch());
    EXPECT_TRUE(begin + 60 <= 131 || begin >= 149) << begin;
  }
}

TEST(MeterCheck, ACounterIsComparedAsMeanPower) {
  const auto joules =
      trace("xcc", counter("node", Scope::node), readings_of([](double t) { return 250 * t; }, 0, 320, 1.0));
  const auto result = check(joules, meter([](double) { return 240.0; }, 0, 320));
  EXPECT_NEAR(result.difference.value(), 10.0 / 240, 1e-9);
}

TEST(MeterCheck, OfManyMinutesFiveAreSpreadOverTheRun) {
  const auto result = check(meter(loads, 0, 3600), meter(loads, 0, 3600));
  ASSERT_EQ(result.windows.size(), 5u);
  EXPECT_EQ(result.minutes, 60u);
  EXPECT_LT(seconds(result.windows[0].begin.time_since_epoch()), 60);
  EXPECT_GT(seconds(result.windows[4].begin.time_since_epoch()), 3500);
}

// A job of 90 s on a node that is polled each 30 s: what the poll cannot see is inside the stated uncertainty, and it
// shrinks with the poll interval. Exact energy of a load from 20 s to 110 s at 700 W above 100 W of idle.
TEST(NodeMeter, TheIntegrationBoundOfThePollIntervalIsInTheUncertainty) {
  const auto load = [](double t) { return t >= 20 && t < 110 ? 800.0 : 100.0; };
  const double exact_j = 800.0 * 90;
  double widest = 0;
  for (const double step : {30.0, 10.0, 1.0}) {
    for (const double phase : {0.0, 0.3, 0.7}) {
      const auto t = trace("slurm", power("node", Scope::node), readings_of(load, -60 + phase * step, 200, step), step);
      const auto summary = summarise(run_of(20, 110), {t});
      const auto& node = domain(summary, "node");
      ASSERT_TRUE(node.energy_j && node.uncertainty_j);
      EXPECT_LE(std::abs(*node.energy_j - exact_j), *node.uncertainty_j) << step << " s, phase " << phase;
      if (step == 30.0) widest = std::max(widest, *node.uncertainty_j);
      if (step == 1.0) {
        EXPECT_LT(*node.uncertainty_j, widest);
      }
    }
  }
}

// Several node meters, and parts that node meters tell: one of them is the node, and nothing is counted twice.
TEST(NodeMeter, NeverAddedToItsPartsNorToAnotherMeter) {
  const auto dcmi = trace("ipmi-dcmi", power("node", Scope::node), constant(500, 0, 100));
  const auto redfish = trace("redfish", power("node", Scope::node), constant(510, 0, 100));
  auto cpus = power("package/all", Scope::package);
  cpus.in_total = false;
  const auto nm = trace("ipmi-nm", cpus, constant(200, 0, 100));
  const auto gpu =
      trace("gpu0", counter("gpu/0", Scope::gpu), readings_of([](double t) { return 250 * t; }, 0, 100, 1));
  EXPECT_NEAR(summarise(run_of(0, 100), {dcmi, redfish, nm, gpu}).run.energy_j.value(), 25'000, 1);
  const double alone_j = summarise(run_of(0, 100), {dcmi, redfish, nm}).run.energy_j.value();
  EXPECT_TRUE(std::abs(alone_j - 50'000) < 1 || std::abs(alone_j - 51'000) < 1) << alone_j;
}

TEST(NodeMeter, F121_ProcessorsAboveTheNodeAreKeptAndWarnedOnce) {
  const auto ipmi = trace("ipmi-dcmi", power("node", Scope::node), constant(102, 0, 10));
  const auto one = trace("rapl0", power("package/0", Scope::package), constant(70, 0, 10));
  const auto two = trace("rapl1", power("package/1", Scope::package), constant(80, 0, 10));
  const auto summary = summarise(run_of(0, 10), {ipmi, one, two});
  EXPECT_NEAR(summary.run.energy_j.value(), 1500, 1e-6);
  EXPECT_NEAR(domain(summary, "node").mean_power_w.value(), 102, 1e-6);
  EXPECT_EQ(count_warnings(summary, "meters-disagree"), 1u);
  EXPECT_EQ(summary.nodes[0].unexplained_j, std::nullopt) << "no negative rest";
}

TEST(NodeMeter, F94_SlurmsFigureIsALineOfItsOwn) {
  auto reported = counter("job/slurm", Scope::system);
  reported.in_total = false;
  const auto slurm = trace("slurm", reported, readings_of([](double t) { return 3000 * t; }, 0, 100, 10.0), 10.0);
  const auto own =
      trace("rapl", counter("package/0", Scope::package), readings_of([](double t) { return 1000 * t; }, 0, 100, 1));
  const auto summary = summarise(run_of(0, 100), {slurm, own});
  EXPECT_NEAR(summary.run.energy_j.value(), 100'000, 1);
  EXPECT_NEAR(domain(summary, "job/slurm").energy_j.value(), 300'000, 1);
  EXPECT_FALSE(domain(summary, "job/slurm").in_total);
}

}  // namespace
}  // namespace ergometer::test
