#include "engine/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace ergometer::workload {
namespace {

std::vector<std::int64_t> all_samples(const std::vector<PlannedBatch>& plan) {
  std::vector<std::int64_t> all;
  for (const PlannedBatch& batch : plan) all.insert(all.end(), batch.samples.begin(), batch.samples.end());
  return all;
}

TEST(Plan, AnEpochTakesEachSampleOnceAndDropsTheRest) {
  const auto plan = plan_epoch(103, 10, 1000, 42, 1, {});
  ASSERT_EQ(plan.size(), 10U);
  for (const PlannedBatch& batch : plan) EXPECT_EQ(batch.samples.size(), 10U);
  const auto all = all_samples(plan);
  const std::set<std::int64_t> distinct(all.begin(), all.end());
  EXPECT_EQ(distinct.size(), 100U);
  EXPECT_GE(*distinct.begin(), 0);
  EXPECT_LT(*distinct.rbegin(), 103);
  EXPECT_FALSE(std::is_sorted(all.begin(), all.end()));
}

TEST(Plan, SeedAndEpochDecideTheOrder) {
  const auto samples = [](std::uint64_t seed, std::int64_t epoch) {
    return all_samples(plan_epoch(50, 5, 10, seed, epoch, {}));
  };
  EXPECT_EQ(samples(1, 1), samples(1, 1));
  EXPECT_NE(samples(1, 1), samples(2, 1));
  EXPECT_NE(samples(1, 1), samples(1, 2));
  EXPECT_NE(plan_epoch(50, 5, 10, 1, 1, {})[0].seed, plan_epoch(50, 5, 10, 1, 2, {})[0].seed);
  EXPECT_NE(plan_epoch(50, 5, 10, 1, 1, {})[0].seed, plan_epoch(50, 5, 10, 1, 1, {})[1].seed);
}

TEST(Plan, TheOrderIsTheSameOnEveryMachine) {
  // The sequence of std::mt19937_64 is fixed by the standard, and so is ours.
  EXPECT_EQ(all_samples(plan_epoch(8, 8, 1, 42, 1, {})), (std::vector<std::int64_t>{0, 7, 5, 1, 3, 6, 4, 2}));
}

TEST(Plan, RanksShareWithoutOverlap) {
  std::set<std::int64_t> distinct;
  std::set<std::uint64_t> seeds;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const auto plan = plan_epoch(101, 4, 1000, 7, 2, {rank, 3});
    ASSERT_EQ(plan.size(), 8U);  // 101 / 12
    for (const std::int64_t sample : all_samples(plan)) EXPECT_TRUE(distinct.insert(sample).second) << sample;
    for (const PlannedBatch& batch : plan) seeds.insert(batch.seed);
  }
  EXPECT_EQ(distinct.size(), 96U);
  EXPECT_EQ(seeds.size(), 24U);
  // In validation nothing is dropped.
  std::vector<std::int64_t> validated;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const auto part = all_samples(plan_in_order(evenly_spaced(23, 23), 4, 0, {rank, 3}));
    validated.insert(validated.end(), part.begin(), part.end());
  }
  std::sort(validated.begin(), validated.end());
  EXPECT_EQ(validated, evenly_spaced(23, 23));
}

TEST(Plan, StepsBoundAnEpoch) {
  EXPECT_EQ(plan_epoch(100, 10, 3, 1, 1, {}).size(), 3U);
  EXPECT_EQ(steps_of_epoch(99, 10, 2), 4);
  EXPECT_EQ(steps_of_epoch(9, 10, 1), 0);
}

TEST(Plan, InOrderEndsWithAPartialBatch) {
  const auto plan = plan_in_order({5, 6, 7, 8, 9}, 2, 0, {});
  ASSERT_EQ(plan.size(), 3U);
  EXPECT_EQ(plan[2].samples, (std::vector<std::int64_t>{9}));
  EXPECT_TRUE(plan_in_order({}, 2, 0, {}).empty());
}

TEST(Plan, EvenlySpacedStartsAtTheFirst) {
  EXPECT_EQ(evenly_spaced(10, 5), (std::vector<std::int64_t>{0, 2, 4, 6, 8}));
  EXPECT_EQ(evenly_spaced(3, 20), (std::vector<std::int64_t>{0, 1, 2}));
}

}  // namespace
}  // namespace ergometer::workload
