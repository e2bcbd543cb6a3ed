// Gain, offset and clock against a power meter: of a simulated sensor, and with the faults of meters.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/build_run.hpp"
#include "analysis/calibration.hpp"

namespace ergometer::test {
namespace {

constexpr double kGain = 1.06, kOffset = -9;

// 100 W and 450 W, switched at random.
struct Truth {
  explicit Truth(unsigned seed) {
    std::mt19937 random(seed);
    for (double t = 0; t < 60; t += std::uniform_real_distribution<double>(0.1, 1.0)(random)) switches.push_back(t);
  }
  [[nodiscard]] double power(double t) const {
    const auto n = std::upper_bound(switches.begin(), switches.end(), t) - switches.begin();
    return n % 2 ? 100 : 450;
  }
  [[nodiscard]] double mean(double to, double window) const {
    double sum = 0;
    for (int i = 0; i < 100; ++i) sum += power(to - window * (i + 0.5) / 100);
    return sum / 100;
  }
  std::vector<double> switches;
};

// A sensor that updates each 100 ms with the mean of 100 ms, 30 ms late, polled each 20 ms.
Trace sensor(const Truth& truth) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 1);
  Readings readings;
  double next = 0.5, shown = 100;
  for (double t = 0.5; t < 58; t += 0.02) {
    for (; next <= t; next += 0.1) shown = (truth.mean(next - 0.03, 0.1) - kOffset) / kGain + noise(random);
    readings.emplace_back(t, shown);
  }
  return trace("gpu0", power("gpu/0", Scope::gpu), readings, 0.02);
}

// A meter of 50 readings a second whose clock reads `behind` seconds too little.
std::vector<Row> meter(const Truth& truth, double behind, double scale = 1) {
  std::vector<Row> rows;
  for (double t = 1; t < 57; t += 0.02)
    rows.push_back({mono_ns(from_seconds(t - behind).count()), Nanos{0}, {scale * truth.mean(t, 0.02)}});
  return rows;
}

TEST(MeterCalibration, FindsGainOffsetAndClock) {
  const Truth truth(1);
  for (const double behind : {0.0, 1.7, -3.2}) {
    const auto found = calibrate_against_meter(sensor(truth), 0, reference_of(meter(truth, behind)), 5);
    ASSERT_TRUE(found.later_s && found.channel.gain) << behind;
    EXPECT_NEAR(found.channel.gain->value, kGain, 0.015);
    EXPECT_NEAR(found.channel.gain->value, kGain, 1.5 * found.channel.gain->uncertainty) << "inside of its interval";
    EXPECT_LT(found.channel.gain->uncertainty, 0.03);
    EXPECT_NEAR(found.channel.offset_w->value, kOffset, 4);
    EXPECT_NEAR(found.later_s->value, behind + 0.03, 0.03);
  }
}

TEST(MeterCalibration, AClockThatIsFartherOffIsNotGuessed) {
  const Truth truth(2);
  EXPECT_FALSE(calibrate_against_meter(sensor(truth), 0, reference_of(meter(truth, 20)), 5).later_s);
}

TEST(MeterCalibration, WhatLiesInAGapIsLeftOut) {
  const Truth truth(3);
  auto rows = meter(truth, 0);
  std::erase_if(rows, [](const Row& r) { return r.t > at(20) && r.t < at(32); });
  rows[100].values[0].reset();
  const auto reference = reference_of(rows);
  ASSERT_EQ(reference.gaps.size(), 1u);
  EXPECT_NEAR(static_cast<double>(reference.gaps[0].second - reference.gaps[0].first) / 1e9, 12, 0.1);
  const auto found = calibrate_against_meter(sensor(truth), 0, reference, 5);
  ASSERT_TRUE(found.channel.gain);
  EXPECT_NEAR(found.channel.gain->value, kGain, 0.02);
}

TEST(MeterCalibration, AnotherUnitShowsInTheGain) {
  const Truth truth(4);
  const auto found = calibrate_against_meter(sensor(truth), 0, reference_of(meter(truth, 0, 0.001)), 5);
  ASSERT_TRUE(found.channel.gain);
  EXPECT_NEAR(found.channel.gain->value, kGain / 1000, 0.001);
}

TEST(MeterCalibration, WithoutALoadNothingIsSet) {
  const Truth truth(5);
  std::vector<Row> still;
  for (double t = 1; t < 57; t += 0.02) still.push_back({mono_ns(from_seconds(t).count()), Nanos{0}, {300.0}});
  EXPECT_FALSE(calibrate_against_meter(sensor(truth), 0, reference_of(still), 5).later_s);
  EXPECT_FALSE(calibrate_against_meter(sensor(truth), 0, reference_of({}), 5).later_s);
}

}  // namespace
}  // namespace ergometer::test
