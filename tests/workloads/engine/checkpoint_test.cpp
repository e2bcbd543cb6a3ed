#include "engine/checkpoint.hpp"

#include "support/temp_dir.hpp"
#include "workloads/engine/tiny.hpp"

namespace ergometer::workload {
namespace {

Checkpoint example() {
  Checkpoint checkpoint;
  checkpoint.workload = "tiny";
  checkpoint.epoch = 3;
  checkpoint.state = "0.1 0.2 A\n";
  checkpoint.settings = {{"batch", "8"}, {"seed", "42"}};
  checkpoint.network = {{"first.weight", torch::randn({2, 3})}, {"count", torch::tensor(std::int64_t{7})}};
  checkpoint.optimiser = {{"step", torch::tensor(5.0F)}};
  return checkpoint;
}

class CheckpointTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  test::TempDir folder_;
};

TEST_F(CheckpointTest, ComesBackAsItWas) {
  const Checkpoint saved = example();
  ASSERT_TRUE(save_checkpoint(path("net.pt"), saved));
  const auto loaded = load_checkpoint(path("net.pt"), "tiny");
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->epoch, 3);
  EXPECT_EQ(loaded->state, saved.state);
  EXPECT_EQ(loaded->settings, saved.settings);
  ASSERT_EQ(loaded->network.size(), 2U);
  EXPECT_EQ(loaded->network[0].first, "first.weight");
  EXPECT_TRUE(torch::equal(loaded->network[0].second, saved.network[0].second));
  EXPECT_EQ(loaded->network[1].second.item<std::int64_t>(), 7);
  EXPECT_TRUE(torch::equal(loaded->optimiser[0].second, saved.optimiser[0].second));
}

TEST_F(CheckpointTest, ReplacesTheFormerAndLeavesNothingBeside) {
  ASSERT_TRUE(check_writable(path("net.pt")));
  EXPECT_FALSE(std::filesystem::exists(path("net.pt")));
  ASSERT_TRUE(save_checkpoint(path("net.pt"), example()));
  Checkpoint second = example();
  second.epoch = 4;
  ASSERT_TRUE(save_checkpoint(path("net.pt"), second));
  EXPECT_EQ(load_checkpoint(path("net.pt"), "tiny")->epoch, 4);
  EXPECT_FALSE(std::filesystem::exists(path("net.pt.part")));
}

TEST_F(CheckpointTest, OthersAreRefused) {
  ASSERT_TRUE(save_checkpoint(path("net.pt"), example()));
  const auto other = load_checkpoint(path("net.pt"), "resnet50");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message, path("net.pt") + ": not a checkpoint of resnet50: it is one of tiny");
  folder_.write("junk.pt", "not an archive");
  const auto junk = load_checkpoint(path("junk.pt"), "tiny");
  ASSERT_FALSE(junk);
  EXPECT_NE(junk.error().message.find("junk.pt: not a checkpoint of tiny"), std::string::npos);
  const std::string whole = folder_.read("net.pt");
  folder_.write("cut.pt", whole.substr(0, whole.size() / 2));
  EXPECT_FALSE(load_checkpoint(path("cut.pt"), "tiny"));
  EXPECT_FALSE(load_checkpoint(path("none.pt"), "tiny"));
  // A dictionary that is none of ours.
  c10::impl::GenericDict foreign(c10::StringType::get(), c10::AnyType::get());
  foreign.insert("weights", torch::ones({2}));
  const auto bytes = torch::pickle_save(foreign);
  folder_.write("foreign.pt", std::string(bytes.begin(), bytes.end()));
  EXPECT_FALSE(load_checkpoint(path("foreign.pt"), "tiny"));
}

TEST_F(CheckpointTest, UnwritableIsKnownBefore) {
  EXPECT_FALSE(check_writable(path("none/net.pt")));
  EXPECT_FALSE(check_writable(folder_.path().string()));
}

TEST(Weights, AreCopiedByNameOrNotAtAll) {
  fixture::Classifier network;
  const NamedTensors own = named_tensors(*network);
  ASSERT_EQ(own.size(), 6U + 3U);  // batch normalisation has three buffers
  NamedTensors other;
  for (const auto& [name, tensor] : own) other.emplace_back(name, torch::full_like(tensor, 3));
  NamedTensors missing(other.begin(), other.end() - 1);
  EXPECT_EQ(copy_by_name(missing, own).error().message, "lacks norm.num_batches_tracked");
  NamedTensors more = other;
  more.emplace_back("extra.weight", torch::zeros({1}));
  EXPECT_EQ(copy_by_name(more, own).error().message, "has unknown extra.weight");
  NamedTensors wrong = other;
  wrong[0].second = torch::zeros({8, fixture::kFeatures - 1});
  EXPECT_EQ(copy_by_name(wrong, own).error().message, "first.weight is 8x5, not 8x6");
  EXPECT_NE(network->first->weight[0][0].item<float>(), 3);
  ASSERT_TRUE(copy_by_name(other, own));
  EXPECT_EQ(network->first->weight[0][0].item<float>(), 3);
  EXPECT_EQ(network->norm->running_mean[0].item<float>(), 3);
}

}  // namespace
}  // namespace ergometer::workload
