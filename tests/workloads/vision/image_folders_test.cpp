#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

#include "vision/classifier.hpp"
#include "vision/picture_set.hpp"
#include "vision/workloads.hpp"
#include "workloads/vision/support.hpp"

namespace ergometer::workload::vision {
namespace {

class ImageFolders : public testing::Test {
 protected:
  DataOptions options() const {
    DataOptions options;
    options.folder = folder_.path().string();
    options.batch = 32;
    options.image_size = 32;
    return options;
  }
  // The opened set, or nullptr with the error in error_.
  std::unique_ptr<DataSet> open(const DataOptions& options, Split split = Split::train) {
    auto set = kResnet50.open_data(options, split);
    if (!set) {
      error_ = set.error();
      return nullptr;
    }
    return std::move(*set);
  }
  std::unique_ptr<DataSet> open(Split split = Split::train) { return open(options(), split); }

  static std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const auto& line : lines) text += line + '\n';
    return text;
  }
  static std::vector<std::int64_t> labels(const DataSet& set) {
    const auto batch = set.load(first_numbers(set.size()), 1);
    if (!batch) return {};
    const auto* values = batch->tensors[1].data_ptr<std::int64_t>();
    return {values, values + batch->tensors[1].numel()};
  }

  test::TempDir folder_;
  Error error_;
};
using FaultCases = ImageFolders;

TEST_F(FaultCases, F144ADamagedPictureIsSkippedAndCountedOrStops) {
  for (int i = 0; i < 20; ++i) write_picture(folder_, fmt::format("train/a/{:02}.JPEG", i), {200, 160});
  const std::string whole = folder_.read("train/a/00.JPEG");
  folder_.write("train/a/99.JPEG", whole.substr(0, whole.size() / 2));
  const auto set = open();
  ASSERT_TRUE(set);
  ASSERT_EQ(set->size(), 21);
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    std::atomic<std::int64_t> good{0};
    std::atomic<std::int64_t> bad{0};
    const auto work = [&](std::int64_t first, std::int64_t count) {
      std::vector<std::int64_t> numbers = first_numbers(count);
      for (auto& number : numbers) number += first;
      const auto batch = set->load(numbers, epoch);
      ASSERT_TRUE(batch);
      good += batch->samples;
      bad += batch->skipped;
    };
    std::thread one(work, 0, 10);
    std::thread two(work, 10, 11);
    one.join();
    two.join();
    EXPECT_EQ(good, 20);
    EXPECT_EQ(bad, 1);
  }
  const auto notes = set->notes();
  ASSERT_EQ(notes.size(), 1U) << joined(notes);
  EXPECT_EQ(notes[0], (folder_ / "train/a/99.JPEG").string() + ": the file is truncated; skipped");

  // Its place holds another picture, without a label.
  const auto batch = set->load({20, 3}, 0);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->tensors[1][0].item<std::int64_t>(), kNoLabel);
  EXPECT_TRUE(torch::equal(batch->tensors[0][0], batch->tensors[0][1]));
  const auto nothing = set->load({20}, 0);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->samples, 0);
  EXPECT_EQ(nothing->tensors[0].max().item<int>(), 0);

  DataOptions strict = options();
  strict.strict = true;
  const auto stopping = open(strict);
  ASSERT_TRUE(stopping);
  EXPECT_TRUE(stopping->load({0, 1}, 0));
  const auto stopped = stopping->load({0, 20}, 0);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message, (folder_ / "train/a/99.JPEG").string() + ": the file is truncated");
  EXPECT_NE(stopped.error().hint.find("--strict"), std::string::npos);
}

TEST_F(FaultCases, F145AnEmptyClassFolderKeepsItsNumber) {
  for (const char* name : {"train/a/1.JPEG", "train/b/1.JPEG", "train/c/1.JPEG", "val/a/1.JPEG", "val/c/1.JPEG"}) {
    write_picture(folder_, name);
  }
  std::filesystem::create_directories(folder_ / "val/b");
  EXPECT_EQ(labels(*open()), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_TRUE(open()->notes().empty());
  for (const bool absent : {false, true}) {
    if (absent) std::filesystem::remove_all(folder_ / "val/b");
    const auto validation = open(Split::validation);
    ASSERT_TRUE(validation);
    EXPECT_EQ(labels(*validation), (std::vector<std::int64_t>{0, 2}));
    EXPECT_EQ(joined(validation->notes()), (folder_ / "val/b").string() + ": no pictures; class 1 keeps its number\n");
  }
  write_picture(folder_, "val/d/1.JPEG");
  EXPECT_FALSE(open(Split::validation));
  EXPECT_EQ(error_.message, (folder_ / "val/d").string() + ": not a class of the training data");
}

TEST_F(FaultCases, F145AnEmptyTrainingFolderKeepsItsNumberToo) {
  for (const char* name : {"train/a/1.JPEG", "train/c/1.JPEG"}) write_picture(folder_, name);
  std::filesystem::create_directories(folder_ / "train/b");
  const auto set = open();
  ASSERT_TRUE(set);
  EXPECT_EQ(labels(*set), (std::vector<std::int64_t>{0, 2}));
  EXPECT_NE(joined(set->notes()).find("train/b: no pictures"), std::string::npos);
}

TEST_F(FaultCases, F147SuffixesOfAnyCaseEachFileOnce) {
  for (const char* name : {"a/1.JPEG", "a/2.jpeg", "a/3.JPG", "a/4.png", "b/1.Jpeg"}) {
    write_picture(folder_, std::string("train/") + name);
  }
  folder_.write("train/a/5.txt", "no picture");
  std::filesystem::create_directory_symlink(folder_ / "train/a", folder_ / "train/again");
  std::filesystem::create_directory_symlink(folder_ / "train", folder_ / "train/a/loop");
  const auto set = open();
  ASSERT_TRUE(set);
  EXPECT_EQ(labels(*set), (std::vector<std::int64_t>{0, 0, 0, 0, 1}));
  EXPECT_EQ(set->state(), "a\nb\n");
  const std::string notes = joined(set->notes());
  EXPECT_NE(notes.find("train/again: a link to a class folder that is already counted"), std::string::npos) << notes;
  EXPECT_NE(notes.find("1 files that are not .jpg, .jpeg or .png are left out"), std::string::npos) << notes;
}

TEST_F(ImageFolders, BatchesAreAsTheTaskWantsThem) {
  for (int i = 0; i < 3; ++i) write_picture(folder_, fmt::format("train/a/{}.JPEG", i), {60 + i, 50});
  write_picture(folder_, "train/b/0.png");
  DataOptions given = options();
  given.batch = 6;
  auto set = open(given);
  ASSERT_TRUE(set);
  const auto batch = set->load({3, 0, 2}, 7);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->tensors[0].sizes(), (std::vector<std::int64_t>{3, 3, 32, 32}));
  EXPECT_EQ(batch->tensors[0].scalar_type(), torch::kUInt8);
  EXPECT_TRUE(batch->tensors[0].is_contiguous(torch::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(torch::equal(batch->tensors[1], torch::tensor({1, 0, 0}, torch::kInt64)));
  EXPECT_EQ(batch->samples, 3);
  EXPECT_EQ(batch->skipped, 0);
  EXPECT_EQ(batch->shape, 3U);  // its own size, its own shape
  // Red rises to the right or, mirrored, to the left; green downwards; blue stays.
  const torch::Tensor image = batch->tensors[0][1].to(torch::kFloat32);
  EXPECT_GT((image[0].narrow(1, 0, 8).mean() - image[0].narrow(1, 24, 8).mean()).abs().item<float>(), 20);
  EXPECT_GT((image[1].narrow(0, 24, 8).mean() - image[1].narrow(0, 0, 8).mean()).item<float>(), 20);
  EXPECT_NEAR(image[2].mean().item<float>(), 90, 4);

  given.graphs = true;
  set = open(given);
  const auto padded = set->load({3, 0, 2}, 7);
  ASSERT_TRUE(padded);
  EXPECT_EQ(padded->tensors[0].size(0), 6);
  EXPECT_EQ(padded->shape, 0U);
  EXPECT_EQ(padded->samples, 3);
  EXPECT_EQ(padded->skipped, 0);
  EXPECT_TRUE(torch::equal(padded->tensors[1], torch::tensor({1, 0, 0, -100, -100, -100}, torch::kInt64)));
  EXPECT_TRUE(torch::equal(padded->tensors[0].narrow(0, 0, 3), batch->tensors[0]));
  const auto baselines = set->baselines({0, 1, 2, 3});
  ASSERT_EQ(baselines.size(), 1U);
  EXPECT_NEAR(baselines[0].second, -(0.75 * std::log(0.75) + 0.25 * std::log(0.25)), 1e-12);
}

TEST_F(ImageFolders, AugmentationFollowsTheSeedAndTheSampleAlone) {
  for (int i = 0; i < 4; ++i) write_picture(folder_, fmt::format("train/a/{}.JPEG", i), {90, 80});
  std::filesystem::create_directories(folder_ / "val");
  std::filesystem::create_directory_symlink(folder_ / "train/a", folder_ / "val/a");
  const auto set = open();
  ASSERT_TRUE(set);
  const auto all = set->load({0, 1, 2, 3}, 5);
  const auto some = set->load({2, 1}, 5);
  const auto other = set->load({0, 1, 2, 3}, 6);
  ASSERT_TRUE(all && some && other);
  EXPECT_TRUE(torch::equal(all->tensors[0][2], some->tensors[0][0]));
  EXPECT_TRUE(torch::equal(all->tensors[0][1], some->tensors[0][1]));
  EXPECT_FALSE(torch::equal(all->tensors[0], other->tensors[0]));
  EXPECT_FALSE(torch::equal(all->tensors[0][0], all->tensors[0][1]));  // the files are the same
  // Flips happen, and not always.
  int mirrored = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto batch = set->load({0}, seed);
    const torch::Tensor red = batch->tensors[0][0][0].to(torch::kFloat32);
    if (red.narrow(1, 0, 8).mean().item<float>() > red.narrow(1, 24, 8).mean().item<float>()) ++mirrored;
  }
  EXPECT_GT(mirrored, 8);
  EXPECT_LT(mirrored, 32);
  const auto validation = open(Split::validation);
  ASSERT_TRUE(validation);
  const auto first = validation->load({0, 1}, 5);
  const auto second = validation->load({0, 1}, 6);
  EXPECT_TRUE(torch::equal(first->tensors[0], second->tensors[0]));
  EXPECT_TRUE(torch::equal(first->tensors[0][0], first->tensors[0][1]));
}

TEST_F(ImageFolders, ACheckpointKnowsTheClasses) {
  write_picture(folder_, "val/c/1.JPEG");
  EXPECT_FALSE(open(Split::validation));
  EXPECT_EQ(error_.message, (folder_ / "train").string() + ": no such folder");
  DataOptions given = options();
  given.state = "a\nb\nc\n";
  const auto set = open(given, Split::validation);
  ASSERT_TRUE(set);
  EXPECT_EQ(labels(*set), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(set->state(), given.state);
}

TEST_F(ImageFolders, HopelessFoldersAreErrorsWithARemedy) {
  DataOptions given = options();
  given.folder += "/none";
  EXPECT_FALSE(open(given));
  EXPECT_EQ(error_.message, given.folder + ": no such folder");
  EXPECT_NE(error_.hint.find("train/"), std::string::npos);
  std::filesystem::create_directories(folder_ / "train/a");
  EXPECT_FALSE(open());
  EXPECT_EQ(error_.message, (folder_ / "train").string() + ": no pictures");
  EXPECT_FALSE(open(Split::validation));
  EXPECT_NE(error_.message.find("val: No such file or directory"), std::string::npos) << error_.message;
  for (int i = 0; i <= 1000; ++i) std::filesystem::create_directories(folder_ / fmt::format("train/c{}", i));
  EXPECT_FALSE(open());
  EXPECT_NE(error_.message.find("1002 classes, but resnet50 has 1000 outputs"), std::string::npos) << error_.message;
  given.image_size = 16;
  EXPECT_FALSE(open(given));
  EXPECT_EQ(error_.fault, Fault::usage);
  EXPECT_EQ(error_.message, "pictures of 16x16 are too small for resnet50");
}

TEST_F(ImageFolders, SyntheticPicturesCostNothingAndStayTheSame) {
  DataOptions given = options();
  given.folder = "synthetic";
  given.batch = 8;
  const auto set = open(given);
  ASSERT_TRUE(set);
  EXPECT_EQ(set->size(), 10240);
  const auto first = set->load(first_numbers(8), 1);
  const auto second = set->load(first_numbers(8), 2);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->tensors[0].sizes(), (std::vector<std::int64_t>{8, 3, 32, 32}));
  EXPECT_EQ(first->tensors[0].data_ptr(), second->tensors[0].data_ptr());
  EXPECT_TRUE(torch::equal(first->tensors[1], second->tensors[1]));
  EXPECT_GE(first->tensors[1].min().item<std::int64_t>(), 0);
  EXPECT_NEAR(first->tensors[0].to(torch::kFloat32).mean().item<float>(), 127.5, 2);
  EXPECT_EQ(set->load({4, 5}, 1)->tensors[0].size(0), 2);
  given.graphs = true;
  const auto padded = open(given)->load({4, 5}, 1);
  EXPECT_EQ(padded->tensors[0].size(0), 8);
  EXPECT_EQ(padded->tensors[1][2].item<std::int64_t>(), kNoLabel);
  EXPECT_EQ(padded->samples, 2);
  given.seed = 7;
  EXPECT_FALSE(torch::equal(open(given)->load({0}, 1)->tensors[0], first->tensors[0].narrow(0, 0, 1)));
}

TEST_F(ImageFolders, RealPicturesOfTheFlatLayout) {
  const auto shared = test::shared_dir();
  if (shared.empty()) GTEST_SKIP() << "the folder of data samples is absent";
  DataOptions given = options();
  given.folder = shared.string() + "/data/imagenet";
  given.batch = 100;
  for (const Split split : {Split::train, Split::validation}) {
    const auto set = open(given, split);
    ASSERT_TRUE(set) << error_.message;
    EXPECT_EQ(set->size(), 58 + 31);
    EXPECT_NE(joined(set->notes()).find("its class folders serve for both"), std::string::npos);
    const auto batch = set->load(first_numbers(set->size()), 3);
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ(batch->skipped, 6);
    EXPECT_EQ(batch->samples, 83);
    EXPECT_EQ(batch->tensors[1].ne(kNoLabel).sum().item<std::int64_t>(), 83);
    EXPECT_EQ(batch->tensors[1].max().item<std::int64_t>(), 25);  // "odd" is the last of 26 folders
    EXPECT_NE(joined(set->notes()).find("odd/lossless_sof3.JPEG: Unsupported JPEG process"), std::string::npos);
  }
}

}  // namespace
}  // namespace ergometer::workload::vision
