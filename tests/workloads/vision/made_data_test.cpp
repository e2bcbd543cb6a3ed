#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "vision/workloads.hpp"
#include "workloads/vision/support.hpp"

namespace ergometer::workload::vision {
namespace {

class MadeData : public testing::Test {
 protected:
  Result<Done> make(const Workload& workload, const std::string& name, std::int64_t count, std::uint64_t seed = 42) {
    return workload.make_data({(folder_ / name).string(), count, seed}, {out_, out_});
  }
  // Names and bytes of all files below a folder.
  std::vector<std::pair<std::string, std::string>> files(const std::string& name) const {
    std::vector<std::pair<std::string, std::string>> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / name)) {
      if (!entry.is_regular_file()) continue;
      const auto path = std::filesystem::relative(entry.path(), folder_ / name).string();
      all.emplace_back(path, folder_.read(name + "/" + path));
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  test::TempDir folder_;
  std::ostringstream out_;
};

TEST_F(MadeData, PhotosAreTheSameBytesForASeed) {
  ASSERT_TRUE(make(kResnet50, "a", 48));
  ASSERT_TRUE(make(kResnet50, "b", 48));
  ASSERT_TRUE(make(kResnet50, "c", 48, 43));
  EXPECT_EQ(files("a").size(), 48U);
  EXPECT_EQ(files("a"), files("b"));
  EXPECT_NE(files("a"), files("c"));
  DataOptions options;
  options.folder = (folder_ / "a").string();
  options.batch = 48;
  options.image_size = 64;
  options.strict = true;
  std::int64_t total = 0;
  for (const Split split : {Split::train, Split::validation}) {
    const auto set = kResnet50.open_data(options, split);
    ASSERT_TRUE(set) << set.error().message;
    EXPECT_TRUE((*set)->notes().empty()) << (*set)->notes()[0];  // each class has pictures
    const auto batch = (*set)->load(first_numbers((*set)->size()), 1);
    ASSERT_TRUE(batch) << batch.error().message;
    total += batch->samples;
  }
  EXPECT_EQ(total, 48);
}

TEST_F(MadeData, XraysAreTheSameBytesForASeedAndDifferByClass) {
  ASSERT_TRUE(make(kXrayVgg19, "a", 40));
  ASSERT_TRUE(make(kXrayVgg19, "b", 40));
  EXPECT_EQ(files("a").size(), 42U);
  EXPECT_EQ(files("a"), files("b"));
  DataOptions options;
  options.folder = (folder_ / "a").string();
  options.batch = 40;
  options.strict = true;
  std::int64_t total = 0;
  for (const Split split : {Split::train, Split::validation}) {
    const auto set = kXrayVgg19.open_data(options, split);
    ASSERT_TRUE(set) << set.error().message;
    const auto batch = (*set)->load(first_numbers((*set)->size()), 1);
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ(batch->tensors[1].sum().item<std::int64_t>() * 2, batch->samples);
    total += batch->samples;
  }
  EXPECT_EQ(total, 40);
}

TEST_F(MadeData, TooFewPicturesAreAUsageError) {
  const auto photos = make(kVgg16, "a", 39);
  ASSERT_FALSE(photos);
  EXPECT_EQ(photos.error().fault, Fault::usage);
  EXPECT_EQ(photos.error().hint, "make 40 or more");
  EXPECT_FALSE(make(kXrayVgg19, "a", 9));
  folder_.write("file", "");
  const auto blocked = make(kVgg16, "file", 40);
  ASSERT_FALSE(blocked);
  EXPECT_NE(blocked.error().message.find("file/train"), std::string::npos);
}

}  // namespace
}  // namespace ergometer::workload::vision
