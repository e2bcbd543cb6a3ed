#include "engine/totals.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace ergometer::workload {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Batch batch_of(std::int64_t samples, std::int64_t tokens = 0, std::int64_t skipped = 0) {
  Batch batch;
  batch.samples = samples;
  batch.tokens = tokens;
  batch.skipped = skipped;
  return batch;
}

TEST(Totals, LossesWeighWhatTheyAreTheMeanOf) {
  Totals by_samples;
  by_samples.add(batch_of(30), {1.0, kNone, kNone});
  by_samples.add(batch_of(10), {5.0, kNone, kNone});
  EXPECT_DOUBLE_EQ(*by_samples.loss(), 2.0);
  EXPECT_FALSE(by_samples.accuracy());
  Totals by_scored;
  by_scored.add(batch_of(30, 3000), {1.0, 1.0, 10.0});
  by_scored.add(batch_of(10, 1000), {5.0, 20.0, 30.0});
  EXPECT_DOUBLE_EQ(*by_scored.loss(), 4.0);
  EXPECT_DOUBLE_EQ(*by_scored.accuracy(), 21.0 / 40);
  EXPECT_EQ(by_scored.samples(), 40);
  EXPECT_EQ(by_scored.tokens(), 4000);
}

TEST(Totals, NothingCountedIsNoZero) {
  Totals totals;
  totals.add(batch_of(0, 0, 8), {0.0, 0.0, 0.0});
  EXPECT_FALSE(totals.loss());
  EXPECT_FALSE(totals.accuracy());
  EXPECT_EQ(totals.skipped(), 8);
}

TEST(Scores, AreNaNWhereATaskScoresNothing) {
  const auto none = pack_scores({torch::tensor(2.5F), {}, {}});
  EXPECT_EQ(none[0].item<float>(), 2.5F);
  EXPECT_TRUE(torch::isnan(none[1]).item<bool>());
  EXPECT_TRUE(torch::isnan(none[2]).item<bool>());
  const auto all = pack_scores({torch::tensor(2.5F, torch::requires_grad()), torch::tensor(3.0F), torch::tensor(4.0F)});
  EXPECT_FALSE(all.requires_grad());
  EXPECT_EQ(all[1].item<float>(), 3.0F);
  EXPECT_EQ(all[2].item<float>(), 4.0F);
}

}  // namespace
}  // namespace ergometer::workload
