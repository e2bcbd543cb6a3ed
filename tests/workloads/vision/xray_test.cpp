#include <fmt/format.h>
#include <gtest/gtest.h>

#include "vision/classifier.hpp"
#include "vision/workloads.hpp"
#include "workloads/vision/support.hpp"

namespace ergometer::workload::vision {
namespace {

class Xray : public testing::Test {
 protected:
  DataOptions options() const {
    DataOptions options;
    options.folder = folder_.path().string();
    options.batch = 8;
    return options;
  }
  Result<std::unique_ptr<DataSet>> open(Split split = Split::validation) const {
    return kXrayVgg19.open_data(options(), split);
  }
  // The message of the error of this valid.csv, without the folder.
  std::string fault(const std::string& list) {
    folder_.write("valid.csv", list);
    const auto set = open();
    if (set) return "no error";
    const std::string& message = set.error().message;
    const auto at = message.find("valid.csv");
    return at == std::string::npos ? message : message.substr(at);
  }
  void write_grey(const std::string& name, std::uint8_t value) {
    const Size size{60, 40};
    const std::vector<std::uint8_t> values(60 * 40, value);
    std::filesystem::create_directories((folder_ / name).parent_path());
    ASSERT_TRUE(write_png((folder_ / name).string(), size, 1, values));
  }

  test::TempDir folder_;
};

TEST_F(Xray, ReadsTheListWithItsPicturesBesideItOrInImgs) {
  for (const char* place : {"", "imgs/"}) {
    write_grey(fmt::format("{}a, 1.png", place), 50);
    write_grey(fmt::format("{}b.png", place), 200);
    folder_.write("valid.csv",
                  "\xEF\xBB\xBFid,\"Label\",Image\r\n7,\"Positive\",\"a, 1.png\"\r\n\r\n8,negative,b.png\r\n");
    const auto set = open();
    ASSERT_TRUE(set) << set.error().message;
    ASSERT_EQ((*set)->size(), 2);
    const auto batch = (*set)->load({0, 1}, 1);
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->tensors[0].sizes(), (std::vector<std::int64_t>{2, 1, 224, 224}));
    EXPECT_TRUE(torch::equal(batch->tensors[1], torch::tensor({1, 0}, torch::kInt64)));
    EXPECT_TRUE(batch->tensors[0][0].eq(50).all().item<bool>());
    EXPECT_TRUE(batch->tensors[0][1].eq(200).all().item<bool>());
    EXPECT_EQ((*set)->state(), "");
    std::filesystem::remove(folder_ / "a, 1.png");
    std::filesystem::remove(folder_ / "b.png");
  }
}

TEST_F(Xray, TrainingTurnsAndPads) {
  write_grey("a.png", 180);
  folder_.write("train.csv", "image,label\na.png,negative\n");
  const auto set = open(Split::train);
  ASSERT_TRUE(set);
  int with_black = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto batch = (*set)->load({0}, seed);
    ASSERT_TRUE(batch);
    const torch::Tensor image = batch->tensors[0];
    const double black = image.eq(0).to(torch::kFloat64).mean().item<double>();
    EXPECT_DOUBLE_EQ(black + image.eq(180).to(torch::kFloat64).mean().item<double>(), 1.0);
    EXPECT_LT(black, 0.4);
    EXPECT_EQ(image[0][0][112][112].item<int>(), 180);
    if (black > 0.02) ++with_black;
    EXPECT_TRUE(torch::equal((*set)->load({0}, seed)->tensors[0], image));
  }
  EXPECT_GT(with_black, 5);
}

TEST_F(Xray, ListsThatCannotBeAreErrorsWithTheLine) {
  write_grey("a.png", 1);
  EXPECT_EQ(fault("image,label\na.png,positive\na.png,maybe\n"), "valid.csv:3: the label 'maybe' is not known");
  EXPECT_EQ(fault("image,label\n,positive\n"), "valid.csv:2: the image is empty");
  EXPECT_EQ(fault("image,lable\na.png,positive\n"), "valid.csv:1: no column 'label'");
  EXPECT_EQ(fault("image,label\na.png\n"), "valid.csv:2: 1 fields where the header has 2");
  EXPECT_EQ(fault("image,label\n"), "valid.csv: no rows after the header");
  EXPECT_EQ(fault(""), "valid.csv: the file is empty");
  EXPECT_EQ(fault("image,label\nz.png,positive\n"), "valid.csv: none of its images is there");
  std::filesystem::remove(folder_ / "valid.csv");
  EXPECT_FALSE(open());
  DataOptions small = options();
  small.image_size = 100;
  const auto refused = kXrayVgg19.open_data(small, Split::validation);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, Fault::usage);
}

TEST_F(Xray, PredictionsAreARowASampleInOrder) {
  write_grey("a.png", 1);
  write_grey("b, c.png", 1);
  folder_.write("valid.csv", "image,label\na.png,positive\nmissing.png,negative\n\"b, c.png\",negative\n");
  const auto set = open();
  ASSERT_TRUE(set);
  const auto batch = (*set)->load({0, 1, 2}, 0);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->skipped, 1);
  auto writer = kXrayVgg19.write_predictions((folder_ / "out.csv").string(), **set);
  ASSERT_TRUE(writer);
  const torch::Tensor logits = torch::tensor({{0.0F, 1.0F}, {0.0F, 0.0F}, {2.0F, 0.0F}, {9.0F, 9.0F}});
  ASSERT_TRUE((*writer)->write({0, 1, 2}, logits));  // the fourth row is padding
  ASSERT_TRUE((*writer)->close());
  EXPECT_EQ(folder_.read("out.csv"),
            "image,label,predicted,probability_positive\n"
            "a.png,positive,positive,0.731059\n"
            "missing.png,negative,,\n"
            "\"b, c.png\",negative,negative,0.119203\n");
  EXPECT_FALSE(kXrayVgg19.write_predictions((folder_ / "none/out.csv").string(), **set));
  DataOptions synthetic = options();
  synthetic.folder = "synthetic";
  const auto random = kXrayVgg19.open_data(synthetic, Split::validation);
  ASSERT_TRUE(random);
  EXPECT_FALSE(kXrayVgg19.write_predictions((folder_ / "out.csv").string(), **random));
}

TEST_F(Xray, ReadsRealPictures) {
  const auto shared = test::shared_dir();
  if (shared.empty()) GTEST_SKIP() << "the folder of data samples is absent";
  DataOptions given;
  given.folder = shared.string() + "/data/xray";
  given.batch = 20;
  given.strict = true;
  for (const auto& [split, count] : {std::pair{Split::train, 20}, {Split::validation, 6}}) {
    const auto set = kXrayVgg19.open_data(given, split);
    ASSERT_TRUE(set) << set.error().message;
    ASSERT_EQ((*set)->size(), count);
    const auto batch = (*set)->load(first_numbers(count), 1);
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ(batch->samples, count);
    const torch::Tensor images = batch->tensors[0].to(torch::kFloat32);
    for (std::int64_t i = 0; i < count; ++i) EXPECT_GT(images[i].std().item<float>(), 15) << i;
  }
}

}  // namespace
}  // namespace ergometer::workload::vision
