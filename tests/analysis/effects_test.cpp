// Effects of factorial studies whose answer is known in closed form.
#include "analysis/effects.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/build_study.hpp"

namespace ergometer {
namespace {

using test::add_run;
using test::full_design;
using test::name_factor;
using test::number_factor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 2 x 2, mean 100, effects of a +-0.1, of b +-0.2, of both +-0.05 on the log; two runs a cell, d above and below.
StudyTable two_by_two(double d) {
  StudyTable t = full_design({number_factor("cap", "W", {150, 250}), name_factor("net", {"x", "y"})});
  for (std::size_t cell = 0; cell < 4; ++cell) {
    const double a = cell / 2 == 0 ? -1 : 1, b = cell % 2 == 0 ? -1 : 1;
    const double level = std::log(100) + 0.1 * a + 0.2 * b + 0.05 * a * b;
    for (const double sign : {-1.0, 1.0}) add_run(t, cell, std::exp(level + sign * d), 1);
  }
  return t;
}

TEST(Effects, TwoByTwoAgainstTheClosedForm) {
  const double d = 0.01;
  const auto e = effects_of(two_by_two(d), "time_s");
  ASSERT_TRUE(e) << e.error().message;
  EXPECT_NEAR(e->mean, 100, 1e-9);
  EXPECT_EQ(e->runs, 8U);
  EXPECT_EQ(e->error_dof, 4);
  ASSERT_EQ(e->effects.size(), 3U);
  EXPECT_NEAR(e->effects[0].levels[1].change, std::expm1(0.1), 1e-12);
  EXPECT_NEAR(e->effects[1].levels[0].change, std::expm1(-0.2), 1e-12);
  EXPECT_THAT(e->effects[2].factors, ElementsAre(0, 1));
  ASSERT_EQ(e->effects[2].levels.size(), 4U);
  EXPECT_THAT(e->effects[2].levels[1].levels, ElementsAre(0, 1));
  EXPECT_NEAR(e->effects[2].levels[1].change, std::expm1(-0.05), 1e-12);
  // s^2 = 8 d^2 / 4; each coefficient has the variance s^2 / 8.
  const double half = t_quantile(0.975, 4) * std::sqrt(2 * d * d / 8);
  ASSERT_TRUE(e->effects[0].levels[1].interval);
  EXPECT_NEAR(e->effects[0].levels[1].interval->low, std::expm1(0.1 - half), 1e-10);
  EXPECT_NEAR(e->effects[2].levels[0].interval->high, std::expm1(0.05 + half), 1e-10);
  // Squares 8 (0.01, 0.04, 0.0025, d^2).
  EXPECT_NEAR(e->effects[1].share, 0.04 / 0.0526, 1e-9);
  EXPECT_NEAR(*e->effects[2].f_ratio, 8 * 0.0025 / (2 * d * d), 1e-6);
  EXPECT_TRUE(e->effects[2].significant());
  EXPECT_NEAR(e->r_squared, 1 - d * d / 0.0526, 1e-9);
  EXPECT_NEAR(*e->error_share, std::expm1(std::sqrt(2.0) * d), 1e-9);
}

TEST(Effects, ThreeLevelsUnequalCountsAndAMissingCombination) {
  StudyTable t = full_design({number_factor("gpus", "", {1, 2, 4}), name_factor("net", {"x", "y"})});
  const double a[] = {0.5, 0.1, -0.6}, b[] = {-0.3, 0.3};
  for (std::size_t cell = 0; cell < 5; ++cell)  // 4 GPUs with y was not run
    for (std::size_t k = 0; k <= cell; ++k) add_run(t, cell, std::exp(2 + a[cell / 2] + b[cell % 2]), 1);
  const auto e = effects_of(t, "time_s");
  ASSERT_TRUE(e) << e.error().message;
  ASSERT_EQ(e->effects.size(), 3U);
  for (std::size_t l = 0; l < 3; ++l) EXPECT_NEAR(e->effects[0].levels[l].change, std::expm1(a[l]), 1e-10);
  EXPECT_NEAR(e->effects[1].levels[1].change, std::expm1(0.3), 1e-10);
  EXPECT_EQ(e->effects[2].not_estimable, "1 of 6 combinations of gpus and net have no valid run");
  EXPECT_TRUE(e->effects[2].levels.empty());
}

TEST(Effects, BlocksAreTakenOut) {
  StudyTable t = full_design({number_factor("cap", "W", {150, 250})});
  for (int block = 0; block < 3; ++block)
    for (std::size_t cell = 0; cell < 2; ++cell)
      add_run(t, cell, std::exp(block + (cell == 0 ? 0.1 : -0.1) + 1e-3 * ((block + static_cast<int>(cell)) % 2)), 1,
              block);
  const auto e = effects_of(t, "time_s");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->blocks, 3);
  EXPECT_EQ(e->error_dof, 2);
  EXPECT_NEAR(e->effects[0].levels[0].change, std::expm1(0.1), 1e-3);
  EXPECT_LT(*e->error_share, 0.01);
}

TEST(Effects, FactorsThatChangeTogetherAreNotTold) {
  StudyTable t = full_design({number_factor("cap", "W", {150, 250}), number_factor("clock", "MHz", {700, 1400})});
  for (const std::size_t cell : {0U, 0U, 3U, 3U}) add_run(t, cell, 1.0 + static_cast<double>(cell), 1);
  const auto e = effects_of(t, "time_s");
  ASSERT_TRUE(e);
  ASSERT_EQ(e->effects.size(), 2U);
  EXPECT_EQ(e->effects[1].not_estimable, "clock changes only together with cap");
}

TEST(Effects, OneFactorAtATimeHasNoInteractions) {
  StudyTable t = full_design({number_factor("cap", "W", {150, 250}), number_factor("clock", "MHz", {700, 1400})});
  for (const std::size_t cell : {0U, 1U, 2U})
    for (int k = 0; k < 2; ++k) add_run(t, cell, 1.0 + static_cast<double>(cell) + 0.01 * k, 1);
  const auto e = effects_of(t, "time_s");
  ASSERT_TRUE(e);
  EXPECT_THAT(e->effects[2].not_estimable, HasSubstr("1 of 4 combinations of cap and clock"));
  EXPECT_TRUE(e->effects[0].levels[0].interval);
}

TEST(Effects, OnlyValidRunsCountAndOutliersStayInTheFit) {
  StudyTable t = two_by_two(0.01);
  add_run(t, 0, 1e6, 1).verdict = Verdict::invalid;
  add_run(t, 0, 1e6, 1).metrics.erase("time_s");
  EXPECT_NEAR(effects_of(t, "time_s")->mean, 100, 1e-9);
  EXPECT_EQ(effects_of(t, "time_s")->left_out, 2U);
  add_run(t, 1, 1e4, 1);
  add_run(t, 2, 80, 1);
  const auto e = effects_of(t, "time_s");
  EXPECT_THAT(e->outliers, ::testing::Contains(10U));
  EXPECT_EQ(e->runs, 10U);
  EXPECT_GT(e->mean, 110);
}

TEST(Effects, WhatHasNoRepeatHasNoInterval) {
  StudyTable t = full_design({number_factor("cap", "W", {150, 250})});
  add_run(t, 0, 1, 1);
  add_run(t, 1, 2, 1);
  const auto e = effects_of(t, "time_s");
  ASSERT_TRUE(e);
  EXPECT_FALSE(e->interval);
  EXPECT_FALSE(e->effects[0].levels[0].interval);
  EXPECT_FALSE(e->effects[0].p_value);
  EXPECT_TRUE(e->outliers.empty());
}

TEST(Effects, EqualValuesAreNoEffectAndNoNumberThatIsNone) {
  StudyTable t = full_design({number_factor("cap", "W", {150, 250})});
  for (const std::size_t cell : {0U, 0U, 1U, 1U}) add_run(t, cell, 5, 1);
  const auto e = effects_of(t, "time_s");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->effects[0].share, 0);
  EXPECT_EQ(e->r_squared, 0);
  EXPECT_NEAR(e->effects[0].levels[0].change, 0, 1e-12);
}

TEST(Effects, SaysWhatIsMissing) {
  StudyTable t = full_design({number_factor("cap", "W", {150, 250})});
  EXPECT_THAT(effects_of(t, "tim_s").error().hint, HasSubstr("did you mean \"time_s\"?"));
  EXPECT_THAT(effects_of(t, "time_s").error().message, HasSubstr("0 of 0 runs"));
  add_run(t, 0, 1, 1);
  add_run(t, 0, 2, 1);
  EXPECT_THAT(effects_of(t, "time_s").error().message, HasSubstr("no factor has two levels"));
}

// The size of the study that protocol 1 describes: it must stay a matter of a second.
TEST(Effects, ThousandsOfRuns) {
  std::vector<std::string> networks;
  for (int i = 0; i < 8; ++i) networks.push_back("net" + std::to_string(i));
  StudyTable t = full_design({name_factor("net", networks), number_factor("gpus", "", {2, 4, 8, 16, 32, 64}),
                              number_factor("cap", "W", {100, 200, 250}),
                              number_factor("clock", "MHz", {135, 735, 1380})});
  for (int repeat = 0; repeat < 8; ++repeat)
    for (std::size_t cell = 0; cell < t.cells.size(); ++cell) {
      const auto& l = t.cells[cell].levels;
      const double x = 0.3 * static_cast<double>(l[0]) - 0.6 * static_cast<double>(l[1]) +
                       0.1 * static_cast<double>(l[2] * l[3]) + 0.01 * std::sin(static_cast<double>(repeat + 8 * cell));
      add_run(t, cell, std::exp(x), 1, repeat);
    }
  const auto e = effects_of(t, "time_s");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->runs, 3456U);
  ASSERT_EQ(e->effects.size(), 10U);
  EXPECT_NEAR(e->effects[9].levels[0].change, std::expm1(0.1), 0.002);
  EXPECT_GT(e->r_squared, 0.999);
}

}  // namespace
}  // namespace ergometer
