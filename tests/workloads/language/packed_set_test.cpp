#include "language/data/packed_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "language/data/masking.hpp"
#include "language/data/synthetic.hpp"
#include "language/workloads.hpp"

namespace ergometer::workload::language {
namespace {

constexpr SpecialTokens kSpecials{0, 100, 101, 102, 103};

TokenRow counting_row(std::size_t count) {
  TokenRow row;
  row.tokens.resize(count);
  for (std::size_t i = 0; i < count; ++i) row.tokens[i] = static_cast<TokenId>(1000 + i % 20000);
  row.specials = kSpecials;
  row.vocabulary_size = 30522;
  row.name = "test";
  return row;
}

DataOptions options_of(std::int64_t sequence, std::int64_t batch = 2, bool graphs = false) {
  DataOptions options;
  options.sequence = sequence;
  options.batch = batch;
  options.graphs = graphs;
  return options;
}

std::unique_ptr<DataSet> make(TokenRow row, const DataOptions& options) {
  auto set = PackedSet::make(std::move(row), options);
  EXPECT_TRUE(set) << set.error().message;
  return std::move(*set);
}

// What the ids were before masking.
torch::Tensor original(const Batch& batch) {
  return torch::where(batch.tensors[1].ne(kNotScored), batch.tensors[1], batch.tensors[0]);
}

TEST(PackedSet, SequencesFollowEachOtherBetweenTheirEnds) {
  const auto set = make(counting_row(25), options_of(10));
  EXPECT_EQ(set->size(), 3);
  EXPECT_EQ(set->notes(), (std::vector<std::string>{"test: the last 1 of 25 tokens fill no sequence of 10"}));
  const auto batch = set->load({2, 0}, 42);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->samples, 2);
  EXPECT_EQ(batch->tokens, 20);
  EXPECT_EQ(batch->shape, 0U);
  ASSERT_EQ(batch->tensors.size(), 2U);
  EXPECT_EQ(batch->tensors[0].scalar_type(), torch::kInt64);
  const torch::Tensor expected = torch::tensor({{101, 1016, 1017, 1018, 1019, 1020, 1021, 1022, 1023, 102},
                                                {101, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 102}},
                                               torch::kInt64);
  EXPECT_TRUE(torch::equal(original(*batch), expected)) << original(*batch);
}

TEST(PackedSet, GraphsGetFullBatches) {
  const auto set = make(counting_row(100), options_of(10, 4, true));
  const auto batch = set->load({1}, 42);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->samples, 1);
  EXPECT_EQ(batch->tokens, 10);
  EXPECT_EQ(batch->tensors[0].sizes(), (std::vector<std::int64_t>{4, 10}));
  EXPECT_TRUE(torch::all(batch->tensors[0].slice(0, 1).eq(0)).item<bool>());
  EXPECT_TRUE(torch::all(batch->tensors[1].slice(0, 1).eq(kNotScored)).item<bool>());
  EXPECT_TRUE(torch::any(batch->tensors[1][0].ne(kNotScored)).item<bool>());
}

TEST(PackedSet, MaskingFollowsSeedAndSampleAlone) {
  const auto set = make(counting_row(4000), options_of(66, 4));
  const auto pair = set->load({3, 7}, 5);
  const auto again = set->load({7}, 5);
  const auto other = set->load({7}, 6);
  ASSERT_TRUE(pair && again && other);
  EXPECT_TRUE(torch::equal(pair->tensors[0][1], again->tensors[0][0]));
  EXPECT_TRUE(torch::equal(pair->tensors[1][1], again->tensors[1][0]));
  EXPECT_FALSE(torch::equal(again->tensors[1], other->tensors[1]));
  EXPECT_FALSE(torch::equal(pair->tensors[1][0].ne(kNotScored), pair->tensors[1][1].ne(kNotScored)));
}

TEST(PackedSet, FifteenPercentAreScoredEightTenthsOfThemMasked) {
  const auto set = make(counting_row(510 * 200), options_of(512, 200));
  std::vector<std::int64_t> all(200);
  std::iota(all.begin(), all.end(), 0);
  const auto batch = set->load(all, 42);
  ASSERT_TRUE(batch);
  const torch::Tensor& ids = batch->tensors[0];
  const torch::Tensor& labels = batch->tensors[1];
  const torch::Tensor scored = labels.ne(kNotScored);
  // 0.15 * 510 = 76.5, rounded away from 0.
  EXPECT_TRUE(torch::all(scored.sum(1).eq(77)).item<bool>());
  EXPECT_FALSE(torch::any(scored.select(1, 0) | scored.select(1, 511)).item<bool>());
  const double count = 77.0 * 200;
  const double masked = (ids.eq(103) & scored).sum().item<double>() / count;
  const double kept = (ids.eq(labels) & scored).sum().item<double>() / count;
  EXPECT_NEAR(masked, 0.8, 0.013);  // four standard deviations
  EXPECT_NEAR(kept, 0.1, 0.01);
  const torch::Tensor replaced = ids.masked_select(scored & ids.ne(103) & ids.ne(labels)).to(torch::kFloat64);
  EXPECT_NEAR(static_cast<double>(replaced.numel()) / count, 0.1, 0.01);
  EXPECT_NEAR(replaced.mean().item<double>(), 30521 / 2.0, 900);  // from all of the vocabulary
  // Places are chosen evenly.
  const torch::Tensor by_place = scored.slice(1, 1, 511).to(torch::kFloat64).sum(0);
  EXPECT_NEAR(by_place.slice(0, 0, 255).mean().item<double>(), 200 * 77 / 510.0, 1.5);
}

TEST(Masking, SpecialTokensAreNotScoredAndOneTokenAlwaysIs) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<std::int64_t> ids = {101, 100, 2000, 103, 0, 102};
    std::vector<std::int64_t> labels(6);
    SampleRandom random(seed, 0);
    mask_tokens(ids.data(), labels.data(), 6, kSpecials, 30522, random);
    EXPECT_EQ(labels, (std::vector<std::int64_t>{-100, -100, 2000, -100, -100, -100}));
    ids = {101, 100, 100, 100, 100, 102};
    mask_tokens(ids.data(), labels.data(), 6, kSpecials, 30522, random);
    EXPECT_EQ(std::count(labels.begin(), labels.end(), -100), 5);
    EXPECT_EQ(std::count(labels.begin(), labels.end(), 100), 1);
    EXPECT_EQ(labels[0] + labels[5], -200);
  }
}

TEST(PackedSet, SequenceLengthsThatCannotBe) {
  for (const std::int64_t sequence : {-1, 1, 2, 513}) {
    DataOptions options = options_of(sequence);
    options.folder = "synthetic";
    const auto set = kDistilbert.open_data(options, Split::validation);
    ASSERT_FALSE(set) << sequence;
    EXPECT_EQ(set.error().fault, Fault::usage);
  }
  EXPECT_TRUE(check_sequence(3));
  EXPECT_TRUE(check_sequence(512));
  EXPECT_TRUE(check_sequence(0));
}

TEST(PackedSet, UnigramPredictorIsTheEntropyOfTheFrequencies) {
  TokenRow row = counting_row(0);
  for (int i = 0; i < 8; ++i) row.tokens.insert(row.tokens.end(), {2000, 2000, 3000, 100});  // 100 does not count
  const auto set = make(std::move(row), options_of(6));
  const auto baselines = set->baselines({0, 5});
  ASSERT_EQ(baselines.size(), 1U);
  EXPECT_EQ(baselines[0].first, "unigram_predictor");
  EXPECT_NEAR(baselines[0].second, -(2 * std::log(2.0 / 3) + std::log(1.0 / 3)) / 3, 1e-12);
}

TEST(Synthetic, PairsTellEachOtherAndSplitsDiffer) {
  DataOptions options = options_of(0);
  options.folder = "synthetic";
  const auto train = kBertBase.open_data(options, Split::train);
  const auto valid = kBertBase.open_data(options, Split::validation);
  ASSERT_TRUE(train && valid);
  EXPECT_EQ((*train)->size(), 16384);
  EXPECT_EQ((*valid)->size(), 1024);
  EXPECT_TRUE((*train)->notes().empty());
  const auto a = (*train)->load({0, 9}, 42);
  const auto b = (*valid)->load({0, 9}, 42);
  ASSERT_TRUE(a && b);
  const torch::Tensor ids = original(*a).slice(1, 1, 511) - 1000;
  EXPECT_TRUE(
      torch::equal(ids.slice(1, 0, 510, 2).bitwise_xor(torch::ones({1}, torch::kInt64)), ids.slice(1, 1, 510, 2)));
  EXPECT_TRUE(torch::all(ids.ge(0) & ids.lt(29520)).item<bool>());
  EXPECT_FALSE(torch::equal(original(*a), original(*b)));
  EXPECT_LT((*valid)->baselines({0, 1})[0].second, std::log(29520.0));
}

}  // namespace
}  // namespace ergometer::workload::language
