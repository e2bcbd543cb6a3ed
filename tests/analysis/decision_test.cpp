// Which setting to run with: rules on options whose best is known, with and without repeats.
#include "analysis/decision.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/build_study.hpp"

namespace ergometer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Option option(double time, double energy, std::optional<double> half = std::nullopt) {
  Option o;
  o.time_s = {time, std::nullopt, 1};
  o.energy_j = {energy, std::nullopt, 1};
  if (half) {
    o.time_s.interval = Bounds{time - *half, time + *half};
    o.energy_j.interval = Bounds{energy - *half, energy + *half};
  }
  return o;
}

TEST(Decision, ParetoFrontIsFastestFirst) {
  const std::vector<Option> options{option(10, 100), option(12, 80), option(13, 85), option(20, 70), option(12, 80)};
  EXPECT_THAT(pareto_front(options).front, ElementsAre(0, 1, 4, 3));
  EXPECT_THAT(pareto_front(options).maybe, IsEmpty());
}

TEST(Decision, BeatenWithinTheIntervalsIsMaybe) {
  const std::vector<Option> options{option(10, 100, 2), option(11, 101, 2), option(20, 200, 2)};
  const auto front = pareto_front(options);
  EXPECT_THAT(front.front, ElementsAre(0));
  EXPECT_THAT(front.maybe, ElementsAre(1));
}

TEST(Decision, LeastEnergyAndWithABoundOnSlowdown) {
  const std::vector<Option> options{option(100, 1000), option(109.6, 828), option(118, 775), option(110.1, 800)};
  const auto least = least_energy(options, 0);
  ASSERT_TRUE(least);
  EXPECT_EQ(least->best, 2U);
  EXPECT_NEAR(least->energy.share, -0.225, 1e-12);
  EXPECT_NEAR(least->time.share, 0.18, 1e-12);
  EXPECT_FALSE(least->intervals_known);
  const auto within = least_energy_within(options, 0, 0.1);
  ASSERT_TRUE(within);
  EXPECT_EQ(within->best, 1U);
  EXPECT_EQ(within->second, 0U);
  EXPECT_FALSE(least_energy({}, 0));
}

TEST(Decision, SecondBestThatIntervalsDoNotTell) {
  const std::vector<Option> options{option(10, 100, 1), option(11, 101, 1), option(12, 110, 1)};
  const auto pick = least_energy(options, 0);
  ASSERT_TRUE(pick);
  EXPECT_TRUE(pick->intervals_known);
  EXPECT_THAT(pick->indistinguishable, ElementsAre(1));
  // Half-widths 1 and 1 make sqrt(2): 101.5 is apart.
  const std::vector<Option> apart{option(10, 100, 1), option(11, 101.5, 1)};
  EXPECT_THAT(least_energy(apart, 0)->indistinguishable, IsEmpty());
}

TEST(Decision, EnergyDelayProducts) {
  // E T: 1000, 1080, 1200; E T^2: 10000, 12960, 24000. And an option that only energy favours.
  const std::vector<Option> options{option(10, 100), option(12, 90), option(20, 60), option(11, 85)};
  EXPECT_EQ(least_energy_delay(options, 0, 1)->best, 3U);
  EXPECT_NEAR(least_energy_delay(options, 0, 1)->score, 935, 1e-9);
  EXPECT_EQ(least_energy_delay(options, 0, 2)->best, 0U);
}

TEST(Decision, ZeusCostGoesFromTimeToEnergy) {
  const std::vector<Option> options{option(10, 2000), option(12, 1400), option(20, 1300)};
  EXPECT_EQ(least_zeus_cost(options, 0, 0, 250)->best, 0U);
  EXPECT_EQ(least_zeus_cost(options, 0, 1, 250)->best, 2U);
  const auto half = least_zeus_cost(options, 0, 0.5, 250);
  EXPECT_EQ(half->best, 1U);
  EXPECT_NEAR(half->score, 0.5 * 1400 + 0.5 * 250 * 12, 1e-9);
}

TEST(Decision, KneeIsFarthestFromTheLine) {
  const std::vector<Option> options{option(10, 100), option(11, 60), option(15, 40), option(20, 30)};
  const auto pick = knee(options, 0);
  ASSERT_TRUE(pick);
  EXPECT_EQ(pick->best, 1U);
  EXPECT_NEAR(pick->score, 0.1 + 30.0 / 70, 1e-12);
  EXPECT_FALSE(knee(std::vector<Option>{option(10, 100), option(20, 50)}, 0));
  EXPECT_FALSE(knee(std::vector<Option>{option(10, 100), option(15, 90), option(20, 30)}, 0)) << "bends outward";
}

TEST(Decision, ChangeCombinesRelativeHalfWidths) {
  const Centre a{90, Bounds{81, 99}, 3}, b{100, Bounds{95, 105}, 3};
  const auto change = change_of(a, b);
  EXPECT_NEAR(change.share, -0.1, 1e-12);
  const double half = std::hypot(std::log(1.1), std::log(1.05));
  EXPECT_NEAR(change.interval->low, 0.9 * std::exp(-half) - 1, 1e-12);
  EXPECT_FALSE(change_of({1, std::nullopt, 1}, b).interval);
}

TEST(Decision, OptionsOfAStudyAndTheReference) {
  StudyTable t = test::full_design({test::number_factor("cap", "W", {250, 150}), test::name_factor("net", {"x", "y"})});
  for (std::size_t cell = 0; cell < 3; ++cell) test::add_run(t, cell, 10 - static_cast<double>(cell), 5);
  test::add_run(t, 3, 1, 1).verdict = Verdict::failed;
  const auto options = options_of(t, "time_s", "energy_j", {0, 1, 2, 3});
  ASSERT_TRUE(options);
  ASSERT_EQ(options->size(), 3U) << "a cell without a valid run is no option";
  EXPECT_EQ((*options)[1].name, "250W, y");
  EXPECT_EQ(reference_option(t, *options, "cap"), 1U) << "the faster one at the largest cap";
  EXPECT_EQ(reference_option(t, *options, std::nullopt), 2U);
  EXPECT_EQ(options_of(t, "time_s", "energy_j", {0, 2})->at(0).name, "250W");
  EXPECT_THAT(options_of(t, "time", "energy_j", {0}).error().hint, HasSubstr("time_s"));
}

TEST(Decision, OneRunBringsItsOwnUncertainty) {
  StudyTable t = test::full_design({test::number_factor("cap", "W", {250, 150})});
  test::add_run(t, 0, 10, 5).metrics["energy_j"].uncertainty = 0.5;
  const auto options = options_of(t, "time_s", "energy_j", {0});
  EXPECT_NEAR(options->at(0).energy_j.interval->high, 5.5, 1e-12);
  EXPECT_FALSE(options->at(0).time_s.interval);
}

}  // namespace
}  // namespace ergometer
