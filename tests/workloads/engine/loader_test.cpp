#include "engine/loader.hpp"

#include "workloads/engine/tiny.hpp"

namespace ergometer::workload {
namespace {

using fixture::faults;

class LoaderTest : public fixture::Quiet, public testing::WithParamInterface<std::int64_t> {
 protected:
  static std::vector<PlannedBatch> plan(std::int64_t steps = 12) { return plan_epoch(100, 8, steps, 42, 1, {}); }
  LoaderOptions options() const { return {GetParam(), torch::kCPU, false, false}; }

  fixture::Points data_{{}, Split::train};
};

TEST_P(LoaderTest, GivesThePlannedBatchesInOrder) {
  Loader loader(data_, options());
  for (int pass = 0; pass < 3; ++pass) {
    const auto planned = plan();
    loader.begin(planned);
    for (const PlannedBatch& expected : planned) {
      auto batch = loader.next();
      ASSERT_TRUE(batch && *batch);
      const auto direct = data_.load(expected.samples, expected.seed);
      EXPECT_TRUE(torch::equal((*batch)->tensors[0], direct->tensors[0]));
      EXPECT_TRUE(torch::equal((*batch)->tensors[1], direct->tensors[1]));
    }
    for (int after = 0; after < 2; ++after) {
      const auto end = loader.next();
      ASSERT_TRUE(end);
      EXPECT_FALSE(*end);
    }
  }
}

TEST_P(LoaderTest, AnErrorComesAtItsPlace) {
  const auto planned = plan();
  faults.broken_sample = planned[5].samples[3];
  Loader loader(data_, options());
  loader.begin(planned);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(loader.next());
  const auto failed = loader.next();
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("points.csv:"), std::string::npos);
}

TEST_P(LoaderTest, AnExceptionIsAnError) {
  const auto planned = plan();
  faults.throwing_sample = planned[0].samples[0];
  Loader loader(data_, options());
  loader.begin(planned);
  const auto failed = loader.next();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "a batch could not be loaded: the library failed");
}

TEST_P(LoaderTest, APassCanBeLeftAndBegunAnew) {
  Loader loader(data_, options());
  loader.begin(plan());
  ASSERT_TRUE(loader.next());
  loader.begin(plan(2));
  int count = 0;
  for (auto batch = loader.next(); batch && *batch; batch = loader.next()) ++count;
  EXPECT_EQ(count, 2);
}

TEST_P(LoaderTest, LoadsNoFurtherAheadThanTwiceItsThreads) {
  {
    Loader loader(data_, options());
    loader.begin(plan());
    ASSERT_TRUE(loader.next());
  }  // waits for the threads
  EXPECT_LE(faults.loads, 1 + 2 * GetParam());
  EXPECT_GE(faults.loads, 1);
}

INSTANTIATE_TEST_SUITE_P(Workers, LoaderTest, testing::Values(0, 1, 4));

using SyntheticLoader = fixture::Quiet;

TEST_F(SyntheticLoader, LoadsAFewBatchesOnceAndTakesTurns) {
  fixture::Points data({}, Split::train);
  Loader loader(data, {2, torch::kCPU, false, true});
  std::vector<torch::Tensor> seen;
  for (int pass = 0; pass < 2; ++pass) {
    loader.begin(plan_epoch(100, 8, 12, 42, 1 + pass, {}));
    for (auto batch = loader.next(); batch && *batch; batch = loader.next()) seen.push_back((*batch)->tensors[0]);
  }
  ASSERT_EQ(seen.size(), 24U);
  EXPECT_EQ(faults.loads, 4);
  EXPECT_TRUE(seen[0].is_same(seen[4]));
  EXPECT_TRUE(seen[1].is_same(seen[13]));
  EXPECT_FALSE(seen[0].is_same(seen[1]));
}

TEST_F(SyntheticLoader, APartialBatchKeepsItsSize) {
  fixture::Points data({}, Split::validation);
  Loader loader(data, {0, torch::kCPU, false, true});
  std::vector<std::int64_t> sizes;
  loader.begin(plan_in_order(evenly_spaced(23, 23), 8, 0, {}));
  for (auto batch = loader.next(); batch && *batch; batch = loader.next())
    sizes.push_back((*batch)->tensors[0].size(0));
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{8, 8, 7}));
}

}  // namespace
}  // namespace ergometer::workload
