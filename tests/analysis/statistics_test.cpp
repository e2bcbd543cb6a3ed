// Means, medians and comparisons against closed forms and published tables.
#include "analysis/statistics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace ergometer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Statistics, QuantilesAsInTables) {
  EXPECT_NEAR(t_quantile(0.975, 1), 12.7062, 1e-4);
  EXPECT_NEAR(t_quantile(0.975, 9), 2.262157, 1e-6);
  EXPECT_NEAR(t_quantile(0.8, 30), 0.853767, 1e-6);
  EXPECT_NEAR(t_quantile(0.025, 9), -2.262157, 1e-6);
  EXPECT_NEAR(t_quantile(0.975, 1e9), 1.959964, 1e-6);
  EXPECT_NEAR(f_tail(4.102821, 2, 10), 0.05, 1e-7);
  EXPECT_NEAR(f_tail(161.4476, 1, 1), 0.05, 1e-7);
  EXPECT_EQ(f_tail(0, 3, 4), 1);
}

TEST(Statistics, MeanWithStudentsInterval) {
  const std::vector<double> values{1, 2, 3, 4, 5};
  const auto mean = mean_with_t(values);
  ASSERT_TRUE(mean && mean->interval);
  EXPECT_DOUBLE_EQ(mean->value, 3);
  EXPECT_EQ(mean->count, 5U);
  const double half = 2.776445 * std::sqrt(2.5) / std::sqrt(5);
  EXPECT_NEAR(mean->interval->low, 3 - half, 1e-6);
  EXPECT_NEAR(mean->interval->high, 3 + half, 1e-6);
}

TEST(Statistics, OneValueTellsNoIntervalAndNoneNoMean) {
  const std::vector<double> one{7};
  for (const auto& centre : {mean_with_t(one), mean_with_bootstrap(one), median_with_bootstrap(one)}) {
    ASSERT_TRUE(centre);
    EXPECT_EQ(centre->value, 7);
    EXPECT_FALSE(centre->interval);
  }
  EXPECT_FALSE(mean_with_t({}));
  EXPECT_FALSE(median_with_bootstrap({}));
  EXPECT_FALSE(deviation_of(one));
}

TEST(Statistics, MedianOfEvenAndOdd) {
  EXPECT_EQ(median_of(std::vector<double>{5, 1, 3}), 3);
  EXPECT_EQ(median_of(std::vector<double>{5, 1, 3, 100}), 4);
}

TEST(Statistics, BootstrapIsRepeatableAndAgreesWithStudent) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(100, 5);
  std::vector<double> values(40);
  for (double& v : values) v = normal(random);
  const auto t = mean_with_t(values), a = mean_with_bootstrap(values), b = mean_with_bootstrap(values);
  EXPECT_EQ(a->interval->low, b->interval->low);
  EXPECT_EQ(a->interval->high, b->interval->high);
  const double width = t->interval->high - t->interval->low;
  EXPECT_NEAR(a->interval->low, t->interval->low, 0.1 * width);
  EXPECT_NEAR(a->interval->high, t->interval->high, 0.1 * width);
}

// Five values a sample: the plain percentile interval would hold the mean in about 83 of 100 samples.
TEST(Statistics, BootstrapOfFewValuesCoversTheMean) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(10, 1);
  int mean_held = 0, median_held = 0;
  constexpr int kSamples = 1000;
  for (int s = 0; s < kSamples; ++s) {
    std::vector<double> values(5);
    for (double& v : values) v = normal(random);
    const auto holds = [](const std::optional<Centre>& c) { return c->interval->low <= 10 && c->interval->high >= 10; };
    mean_held += holds(mean_with_bootstrap(values, {400, 3}));
    median_held += holds(median_with_bootstrap(values, {400, 3}));
  }
  EXPECT_GT(mean_held, 0.90 * kSamples);
  EXPECT_GT(median_held, 0.90 * kSamples);
}

TEST(Statistics, OutliersAreNamed) {
  EXPECT_THAT(outliers_of(std::vector<double>{10, 11, 9, 10.5, 30, 9.5}), ElementsAre(4));
  EXPECT_THAT(outliers_of(std::vector<double>{10, 10, 10, 10, 10, 10, 50}), ElementsAre(6));
  EXPECT_THAT(outliers_of(std::vector<double>{10, 11, 9, 10.5, 11.5}), IsEmpty());
  EXPECT_THAT(outliers_of(std::vector<double>{1, 1, 1, 1, 1}), IsEmpty());
  EXPECT_THAT(outliers_of(std::vector<double>{1, 1, 1, 100}), IsEmpty()) << "four values tell no outlier";
}

TEST(Comparison, PairedIsOfTheLogRatio) {
  // Ratios 0.9 e^d, 0.9 and 0.9 e^-d: mean ln 0.9, deviation d.
  const double d = 0.01;
  const std::vector<Pair> pairs{{90 * std::exp(d), 100}, {180, 200}, {45 * std::exp(-d), 50}};
  const auto c = compare_paired(pairs);
  ASSERT_TRUE(c && c->interval);
  EXPECT_NEAR(c->difference, -0.1, 1e-12);
  EXPECT_NEAR(c->spread, d, 1e-12);
  const double half = 4.302653 * d / std::sqrt(3);
  EXPECT_NEAR(c->interval->low, 0.9 * std::exp(-half) - 1, 1e-7);
  EXPECT_NEAR(c->interval->high, 0.9 * std::exp(half) - 1, 1e-7);
  EXPECT_TRUE(c->distinguishable());
}

TEST(Comparison, BlocksTakeOutWhatTheyShare) {
  // The room grows warmer from block to block; A is 5 % below B in each.
  std::vector<BlockedValue> values;
  for (int block = 0; block < 4; ++block) {
    const double level = 100 * std::pow(1.2, block);
    values.push_back({0.95 * level * 1.001, block, true});
    values.push_back({0.95 * level / 1.001, block, true});
    values.push_back({level, block, false});
  }
  values.push_back({1, 9, true});  // a block without the other side tells nothing
  const auto c = compare_blocked(values);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->pairs, 4U);
  EXPECT_NEAR(c->difference, -0.05, 1e-9);
  EXPECT_TRUE(c->distinguishable());
  std::vector<double> a, b;
  for (const auto& v : values)
    if (v.block != 9) (v.is_a ? a : b).push_back(v.value);
  EXPECT_FALSE(compare_unpaired(a, b)->distinguishable()) << "without blocks the warming hides it";
}

TEST(Comparison, UnpairedIsWelch) {
  const std::vector<double> a{std::exp(1.0), std::exp(2.0), std::exp(3.0)}, b{std::exp(0.0), std::exp(4.0)};
  const auto c = compare_unpaired(a, b);
  ASSERT_TRUE(c && c->interval);
  EXPECT_NEAR(c->difference, 0, 1e-12);
  // Variances 1 and 8: parts 1/3 and 4; degrees of freedom (13/3)^2 / (1/18 + 16) = 1.16955.
  const double half = t_quantile(0.975, square(13.0 / 3) / (1.0 / 18 + 16)) * std::sqrt(13.0 / 3);
  EXPECT_NEAR(std::log1p(c->interval->high), half, 1e-9);
}

TEST(Comparison, ValuesThatHaveNoLogarithmCompareNothing) {
  EXPECT_FALSE(compare_paired(std::vector<Pair>{{1, 0}}));
  EXPECT_FALSE(compare_paired({}));
  EXPECT_FALSE(compare_unpaired(std::vector<double>{-1}, std::vector<double>{1}));
  EXPECT_FALSE(compare_blocked(std::vector<BlockedValue>{{1, 0, true}, {1, 1, false}}));
}

TEST(Comparison, PairsThatWouldShowADifference) {
  Comparison c;
  c.interval = Bounds{-0.1, 0.1};
  c.spread = std::log1p(0.01);
  // n = 10: (2.262157 + 0.883404)^2 = 9.89; n = 9: (2.306004 + 0.888890)^2 = 10.2.
  EXPECT_EQ(pairs_to_show(c, 0.01), 10U);
  c.spread = 0;
  EXPECT_EQ(pairs_to_show(c, 0.01), 2U);
  c.interval.reset();
  EXPECT_FALSE(pairs_to_show(c, 0.01));
}

TEST(Comparison, SaysWhatDiffers) {
  Comparison c;
  c.difference = -0.071;
  c.interval = Bounds{-0.083, -0.059};
  c.pairs = 12;
  EXPECT_EQ(verdict_text(c, {"A", "B"}), "A uses 7.1 % less energy than B, interval 5.9 to 8.3 %, 12 pairs");
  c.difference = 0.071;
  c.interval = Bounds{0.059, 0.083};
  c.kind = Comparison::Kind::blocked;
  EXPECT_EQ(verdict_text(c, {"A", "B", "time", "takes"}),
            "A takes 7.1 % more time than B, interval 5.9 to 8.3 %, 12 blocks");
}

TEST(Comparison, SaysWhatCouldNotBeSeenAndWhatWouldShowIt) {
  const std::vector<Pair> pairs{{1.01, 1}, {0.992, 1}, {1.003, 1}, {0.995, 1}, {1.001, 1}, {1.0, 1}};
  const auto c = compare_paired(pairs);
  ASSERT_TRUE(c);
  ASSERT_FALSE(c->distinguishable());
  const auto more = pairs_to_show(*c, 0.002);
  ASSERT_TRUE(more);
  EXPECT_EQ(verdict_text(*c, {"A", "B"}),
            "no difference larger than 0.7 % can be seen between A and B in energy, 6 pairs; " + std::to_string(*more) +
                " pairs would show 0.2 %");
}

TEST(Comparison, OnePairTellsNothingOfChance) {
  const auto c = compare_paired(std::vector<Pair>{{110, 100}});
  ASSERT_TRUE(c);
  EXPECT_FALSE(c->distinguishable());
  EXPECT_EQ(verdict_text(*c, {"A", "B"}),
            "A uses 10.0 % more energy than B; with 1 pair nothing is known of chance: repeat both");
}

}  // namespace
}  // namespace ergometer
