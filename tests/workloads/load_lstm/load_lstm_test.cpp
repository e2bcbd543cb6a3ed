#include "load_lstm/load_lstm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "engine/infer.hpp"
#include "engine/train.hpp"
#include "support/temp_dir.hpp"

namespace ergometer::workload::load_lstm {
namespace {

class LoadLstm : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new test::TempDir;
    std::ostringstream text;
    MakeDataOptions options;
    options.folder = data_->path().string();
    options.count = 2;
    ASSERT_TRUE(make_data(options, {text, text}));
    // Ten weeks of the first city are enough to validate on.
    const std::string valid = data_->read("valid.csv");
    data_->write("valid.csv", valid.substr(0, valid.find("2018-03-12 00:00:00")));
  }
  static void TearDownTestSuite() {
    delete data_;
    data_ = nullptr;
  }
  static TrainOptions train_options() {
    TrainOptions options;
    options.data.folder = data_->path().string();
    options.epochs = 2;
    options.data.batch = 64;
    options.steps = 60;
    options.learning_rate = 5e-3;
    options.validate_samples = 300;
    return options;
  }
  Console console() { return {out_, notes_}; }

  static test::TempDir* data_;
  test::TempDir folder_;
  std::ostringstream out_;
  std::ostringstream notes_;
};
test::TempDir* LoadLstm::data_ = nullptr;

TEST_F(LoadLstm, TrainingLearnsAndACheckpointForecastsTheSame) {
  TrainOptions options = train_options();
  options.checkpoint = (folder_ / "net.pt").string();
  options.validate_samples.reset();
  const auto report = train(kWorkload, options, {}, console());
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->epochs.size(), 2U);
  const EpochReport& last = report->epochs.back();
  EXPECT_EQ(last.samples, 60 * 64);
  EXPECT_FALSE(last.accuracy);
  ASSERT_EQ(report->baselines.size(), 2U);
  const double mean_predictor = report->baselines[0].second;
  EXPECT_LT(*last.validation_loss, 0.5 * mean_predictor);
  EXPECT_LT(*last.validation_loss, *report->epochs.front().validation_loss);
  // The data is not made so that last week simply comes again.
  EXPECT_GT(report->baselines[1].second, 0.15 * mean_predictor);

  InferOptions infer_options;
  infer_options.data.folder = options.data.folder;
  infer_options.data.batch = 100;
  infer_options.checkpoint = options.checkpoint;
  infer_options.output = (folder_ / "forecasts.csv").string();
  const auto inferred = infer(kWorkload, infer_options, console());
  ASSERT_TRUE(inferred) << inferred.error().message;
  EXPECT_EQ(inferred->samples, 70 * 24 - 335);
  EXPECT_NEAR(*inferred->loss, *last.validation_loss, 1e-6);
  EXPECT_EQ(inferred->baselines, report->baselines);

  std::istringstream lines(folder_.read("forecasts.csv"));
  std::string line;
  std::int64_t count = 0;
  while (std::getline(lines, line)) {
    if (++count == 2) {
      EXPECT_EQ(line.rfind("City 01,2018-01-08 00:00:00,", 0), 0U) << line;
      EXPECT_EQ(std::count(line.begin(), line.end(), ','), 169);
    }
  }
  EXPECT_EQ(count, 1 + inferred->samples);
}

TEST_F(LoadLstm, ASeedGivesTheSameLosses) {
  TrainOptions options = train_options();
  options.epochs = 1;
  options.steps = 5;
  const auto first = train(kWorkload, options, {}, console());
  const auto second = train(kWorkload, options, {}, console());
  options.data.seed = 43;
  const auto other = train(kWorkload, options, {}, console());
  ASSERT_TRUE(first && second && other);
  EXPECT_EQ(first->epochs[0].loss, second->epochs[0].loss);
  EXPECT_EQ(first->epochs[0].validation_loss, second->epochs[0].validation_loss);
  EXPECT_NE(first->epochs[0].loss, other->epochs[0].loss);
}

TEST_F(LoadLstm, DataIsTheSameBytesForASeed) {
  std::vector<std::string> bytes;
  for (const auto& [name, cities, seed] : {std::tuple{"a", 2, 42}, {"b", 1, 42}, {"c", 1, 43}}) {
    MakeDataOptions options;
    options.folder = (folder_ / name).string();
    options.count = cities;
    options.seed = static_cast<std::uint64_t>(seed);
    ASSERT_TRUE(make_data(options, console()));
    bytes.push_back(folder_.read(std::string(name) + "/train.csv"));
  }
  EXPECT_EQ(bytes[0], data_->read("train.csv"));
  EXPECT_EQ(bytes[0].rfind(bytes[1], 0), 0U);  // fewer cities are the first ones
  EXPECT_NE(bytes[1], bytes[2]);
  EXPECT_EQ(std::count(bytes[0].begin(), bytes[0].end(), '\n'), 1 + 2 * 26304);
}

TEST_F(LoadLstm, LeftOutWindowsAreNoted) {
  std::string text = data_->read("train.csv");
  const auto line = text.find("2015-06-01 00:00:00");
  text.erase(line, text.find('\n', line) + 1 - line);
  folder_.write("train.csv", text);
  folder_.write("valid.csv", data_->read("valid.csv"));
  TrainOptions options = train_options();
  options.data.folder = folder_.path().string();
  options.epochs = 1;
  options.steps = 1;
  ASSERT_TRUE(train(kWorkload, options, {}, console()));
  EXPECT_NE(notes_.str().find("City 01: 1 hours without a row and 0 without a load"), std::string::npos)
      << notes_.str();
  EXPECT_NE(notes_.str().find("336 windows that touch a missing hour are left out"), std::string::npos);
  options.data.strict = true;
  EXPECT_FALSE(train(kWorkload, options, {}, console()));
}

TEST_F(LoadLstm, HopelessSettingsAreErrors) {
  TrainOptions options = train_options();
  options.data.batch = 1'000'000;
  const auto too_large = train(kWorkload, options, {}, console());
  ASSERT_FALSE(too_large);
  EXPECT_NE(too_large.error().message.find("are less than one batch of 1000000"), std::string::npos);

  options = train_options();
  options.learning_rate = 1e30;
  const auto diverged = train(kWorkload, options, {}, console());
  ASSERT_FALSE(diverged);
  EXPECT_NE(diverged.error().message.find("the loss is no longer finite in epoch 1"), std::string::npos);
}

TEST_F(LoadLstm, InferenceUsesTheScalesOfItsTraining) {
  // Other scales in train.csv must not matter, since the checkpoint has those of the training.
  TrainOptions options = train_options();
  options.epochs = 1;
  options.steps = 2;
  options.checkpoint = (folder_ / "net.pt").string();
  ASSERT_TRUE(train(kWorkload, options, {}, console()));
  InferOptions infer_options;
  infer_options.data.folder = folder_.path().string();
  infer_options.data.batch = 100;
  infer_options.checkpoint = options.checkpoint;
  folder_.write("valid.csv", data_->read("valid.csv"));  // no train.csv at all
  const auto inferred = infer(kWorkload, infer_options, console());
  ASSERT_TRUE(inferred) << inferred.error().message;
  infer_options.checkpoint.clear();
  const auto without = infer(kWorkload, infer_options, console());
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().message.find("train.csv"), std::string::npos);
}

TEST_F(LoadLstm, SyntheticIsTheDataThatMakeDataWrites) {
  DataOptions options;
  options.folder = data_->path().string();
  const auto read = open_data(options, Split::train);
  options.folder = "synthetic";
  const auto synthetic = open_data(options, Split::train);
  ASSERT_TRUE(read && synthetic);
  const auto from_file = (*read)->load({0, 1000}, 0);
  const auto from_memory = (*synthetic)->load({0, 1000}, 0);
  ASSERT_TRUE(from_file && from_memory);
  ASSERT_EQ(from_memory->tensors.size(), 2U);
  EXPECT_EQ(from_memory->samples, 2);
  // The file has two digits after the point.
  EXPECT_TRUE(torch::allclose(from_file->tensors[0], from_memory->tensors[0], 0, 1e-3));
  EXPECT_TRUE(torch::allclose(from_file->tensors[1], from_memory->tensors[1], 0, 1e-3));
  EXPECT_EQ((*synthetic)->size(), 26304 - 335);
}

}  // namespace
}  // namespace ergometer::workload::load_lstm
