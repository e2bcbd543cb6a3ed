// Power laws and scaling tables against closed forms.
#include "analysis/scaling.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "analysis/build_study.hpp"

namespace ergometer {
namespace {

using ::testing::HasSubstr;

std::vector<Point> points_on(const std::function<double(double)>& law, const std::vector<double>& xs) {
  std::vector<Point> out;
  for (const double x : xs) out.push_back({x, law(x)});
  return out;
}

TEST(Scaling, ExactLawIsFound) {
  const auto law = fit_power_law(points_on([](double n) { return 100 * std::pow(n, -0.9); }, {2, 4, 8, 16, 32}));
  ASSERT_TRUE(law);
  EXPECT_NEAR(law->a, 100, 1e-9);
  EXPECT_NEAR(law->b, 0.9, 1e-12);
  EXPECT_EQ(law->c, 0);
  EXPECT_NEAR(law->r_squared, 1, 1e-12);
  EXPECT_NEAR(*law->held_out_error, 0, 1e-12);
  EXPECT_NEAR(law->b_interval->high - law->b_interval->low, 0, 1e-9);
  EXPECT_EQ(law->x_max, 32);
}

TEST(Scaling, IntervalsAgainstTheClosedForm) {
  // ln x of -1, 0, 1, two points each, d above and below: s^2 = 6 d^2 / 4, var b = s^2 / 4, var ln a = s^2 / 6.
  const double d = 0.02;
  std::vector<Point> points;
  for (const double lx : {-1.0, 0.0, 1.0})
    for (const double sign : {-1.0, 1.0}) points.push_back({std::exp(lx), std::exp(3 - 0.5 * lx + sign * d)});
  const auto law = fit_power_law(points);
  ASSERT_TRUE(law && law->b_interval);
  const double s = std::sqrt(1.5) * d, t = t_quantile(0.975, 4);
  EXPECT_NEAR(law->b_interval->low, 0.5 - t * s / 2, 1e-10);
  EXPECT_NEAR(std::log(law->a_interval->high), 3 + t * s / std::sqrt(6), 1e-10);
  EXPECT_NEAR(*law->residual_share, std::expm1(s), 1e-10);
  EXPECT_NEAR(law->residuals[1], d, 1e-10);
  EXPECT_NEAR(law->r_squared, 1 - 6 * d * d / (4 * 0.25 + 6 * d * d), 1e-9);
  EXPECT_FALSE(law->held_out_error) << "three places are too few";
  // At x = 1 a new measurement: s^2 (1 + 1/6).
  EXPECT_NEAR(std::log(predict(*law, 1).interval->high), 3 + t * s * std::sqrt(1 + 1.0 / 6), 1e-10);
  EXPECT_NEAR(std::log(predict(*law, std::exp(1.0)).interval->high),
              2.5 + t * s * std::sqrt(1 + 1.0 / 6 + 1.0 / 4), 1e-10);
}

TEST(Scaling, FloorIsFoundWhereThereIsOne) {
  const std::vector<double> counts{1, 2, 4, 8, 16, 32};
  const auto law = fit_power_law(points_on([](double n) { return 100 / n + 5; }, counts), true);
  ASSERT_TRUE(law);
  EXPECT_TRUE(law->has_floor);
  EXPECT_NEAR(law->a, 100, 1e-4);
  EXPECT_NEAR(law->b, 1, 1e-6);
  EXPECT_NEAR(law->c, 5, 1e-5);
  EXPECT_NEAR(*law->largest_held_out_error, 0, 1e-4);
  EXPECT_NEAR(predict(*law, 64).value, 100.0 / 64 + 5, 1e-4);
}

TEST(Scaling, FloorIsRefusedWhereChanceExplainsIt) {
  std::vector<Point> points;
  int i = 0;
  for (const double x : {1.0, 2.0, 4.0, 8.0, 16.0}) points.push_back({x, 100 / x * (i++ % 2 == 0 ? 1.02 : 0.98)});
  const auto law = fit_power_law(points, true);
  ASSERT_TRUE(law);
  EXPECT_FALSE(law->has_floor);
  EXPECT_EQ(law->c, 0);
  EXPECT_FALSE(law->c_interval);
  const auto few = fit_power_law(points_on([](double n) { return 100 / n + 5; }, {1, 8}), true);
  ASSERT_TRUE(few);
  EXPECT_FALSE(few->has_floor);
  EXPECT_FALSE(few->b_interval) << "two points leave nothing to judge the law by";
}

TEST(Scaling, IntervalOfTheExponentHoldsTheTruth) {
  int held = 0;
  std::uint64_t state = 88172645463325252U;
  const auto noise = [&] {  // sum of twelve uniform numbers, nearly normal
    double sum = -6;
    for (int k = 0; k < 12; ++k) {
      state ^= state << 13U, state ^= state >> 7U, state ^= state << 17U;
      sum += static_cast<double>(state >> 11U) / 9007199254740992.0;
    }
    return sum;
  };
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<Point> points;
    for (const double x : {2.0, 4.0, 8.0, 16.0, 32.0, 64.0})
      points.push_back({x, (300 / x + 8) * std::exp(0.01 * noise())});
    const auto law = fit_power_law(points, true);
    ASSERT_TRUE(law);
    held += law->has_floor && law->b_interval->low <= 1 && law->b_interval->high >= 1;
  }
  EXPECT_GT(held, 450);
}

TEST(Scaling, OutsideTheFittedRangeIsSaid) {
  const auto law = fit_power_law(points_on([](double n) { return 100 / n; }, {2, 4, 8}));
  ASSERT_TRUE(law);
  EXPECT_FALSE(predict(*law, 8).warning);
  EXPECT_THAT(predict(*law, 64).warning.value(),
              HasSubstr("64 is outside the fitted range 2 to 8 (8 times its upper end)"));
  EXPECT_THAT(predict(*law, 1).warning.value(), HasSubstr("0.5 times its lower end"));
}

TEST(Scaling, WhatCannotBeFittedIsSaid) {
  EXPECT_THAT(fit_power_law(std::vector<Point>{{2, 1}, {2, 3}}).error().message, HasSubstr("two places"));
  EXPECT_THAT(fit_power_law(std::vector<Point>{{2, 1}, {0, 3}}).error().message, HasSubstr("above 0"));
  EXPECT_THAT(fit_power_law(std::vector<Point>{{2, 1}, {3, -3}}).error().message, HasSubstr("above 0"));
}

TEST(Scaling, PointsOfAStudy) {
  StudyTable t = test::full_design({test::number_factor("gpus", "", {1, 2}), test::name_factor("net", {"x", "y"})});
  for (std::size_t cell = 0; cell < 4; ++cell) test::add_run(t, cell, 10.0 + static_cast<double>(cell), 1);
  test::add_run(t, 0, 99, 1).verdict = Verdict::invalid;
  const auto points = points_of(t, "gpus", "time_s", {0, 2});
  ASSERT_TRUE(points);
  ASSERT_EQ(points->size(), 2U);
  EXPECT_EQ((*points)[1].x, 2);
  EXPECT_EQ((*points)[1].y, 12);
  EXPECT_THAT(points_of(t, "net", "time_s", {0}).error().message, HasSubstr("level \"x\" of net is no number"));
  EXPECT_THAT(points_of(t, "cap", "time_s", {0}).error().message, HasSubstr("no factor \"cap\""));
}

TEST(Scaling, SpeedUpEfficiencyAndEnergyToSolution) {
  const std::vector<Point> time{{2, 100}, {4, 60}, {8, 40}}, energy{{2, 1000}, {4, 1200}, {8, 1600}};
  const auto rows = scaling_rows(time, energy);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_NEAR(rows[0].speed_up, 1, 1e-12);
  EXPECT_NEAR(rows[1].speed_up, 100.0 / 60, 1e-12);
  EXPECT_NEAR(rows[1].efficiency, 100.0 / 60 / 2, 1e-12);
  EXPECT_NEAR(rows[2].efficiency, 2.5 / 4, 1e-12);
  EXPECT_NEAR(rows[2].energy_ratio.value(), 1.6, 1e-12);
  EXPECT_FALSE(rows[2].speed_up_interval) << "one run each tells no interval";
  EXPECT_FALSE(scaling_rows(time, {})[1].energy_ratio);
}

TEST(Scaling, EnergyRateIsTheMeanOfEnergyOverGpuHours) {
  const std::vector<Point> points{{1, 900e3}, {2, 1800e3 * 1.1}, {10, 9000e3 * 0.9}};
  const auto rate = energy_rate(points);
  ASSERT_TRUE(rate && rate->interval);
  EXPECT_NEAR(rate->joules_per_gpu_hour, 900e3, 1e-6);
  EXPECT_NEAR(rate->mean_power_per_gpu_w, 250, 1e-9);
  EXPECT_NEAR(rate->largest_deviation, 0.1, 1e-12);
  EXPECT_NEAR(rate->interval->high - 900e3, t_quantile(0.975, 2) * 90e3 / std::sqrt(3), 1e-3);
  EXPECT_FALSE(energy_rate({}));
}

}  // namespace
}  // namespace ergometer
