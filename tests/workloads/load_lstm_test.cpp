#include "load_lstm/load_lstm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

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
    options.cities = 2;
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
    options.data = data_->path().string();
    options.epochs = 2;
    options.batch = 64;
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
  const auto reports = train(options, console());
  ASSERT_TRUE(reports) << reports.error().message;
  ASSERT_EQ(reports->size(), 2U);
  EXPECT_EQ(reports->back().samples, 60 * 64);
  const Losses& losses = reports->back().validation;
  EXPECT_LT(losses.model, 0.5 * losses.mean_predictor);
  EXPECT_LT(losses.model, reports->front().validation.model);
  // The data is not made so that last week simply comes again.
  EXPECT_GT(losses.last_week, 0.15 * losses.mean_predictor);

  InferOptions infer_options;
  infer_options.data = options.data;
  infer_options.checkpoint = options.checkpoint;
  infer_options.batch = 100;
  infer_options.output = (folder_ / "forecasts.csv").string();
  const auto report = infer(infer_options, console());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->windows, 70 * 24 - 335);
  EXPECT_NEAR(report->losses.model, losses.model, 1e-6);
  EXPECT_DOUBLE_EQ(report->losses.mean_predictor, losses.mean_predictor);
  EXPECT_DOUBLE_EQ(report->losses.last_week, losses.last_week);

  std::istringstream lines(folder_.read("forecasts.csv"));
  std::string line;
  std::int64_t count = 0;
  while (std::getline(lines, line)) {
    if (++count == 2) {
      EXPECT_EQ(line.rfind("City 01,2018-01-08 00:00:00,", 0), 0U) << line;
      EXPECT_EQ(std::count(line.begin(), line.end(), ','), 169);
    }
  }
  EXPECT_EQ(count, 1 + report->windows);
}

TEST_F(LoadLstm, ASeedGivesTheSameLosses) {
  TrainOptions options = train_options();
  options.epochs = 1;
  options.steps = 5;
  const auto first = train(options, console());
  const auto second = train(options, console());
  options.seed = 43;
  const auto other = train(options, console());
  ASSERT_TRUE(first && second && other);
  EXPECT_EQ((*first)[0].train_loss, (*second)[0].train_loss);
  EXPECT_EQ((*first)[0].validation.model, (*second)[0].validation.model);
  EXPECT_NE((*first)[0].train_loss, (*other)[0].train_loss);
}

TEST_F(LoadLstm, DataIsTheSameBytesForASeed) {
  std::vector<std::string> bytes;
  for (const auto& [name, cities, seed] : {std::tuple{"a", 2, 42}, {"b", 1, 42}, {"c", 1, 43}}) {
    MakeDataOptions options;
    options.folder = (folder_ / name).string();
    options.cities = cities;
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
  options.data = folder_.path().string();
  options.epochs = 1;
  options.steps = 1;
  ASSERT_TRUE(train(options, console()));
  EXPECT_NE(notes_.str().find("City 01: 1 hours without a row and 0 without a load"), std::string::npos)
      << notes_.str();
  EXPECT_NE(notes_.str().find("336 windows that touch a missing hour are left out"), std::string::npos);
  options.strict = true;
  EXPECT_FALSE(train(options, console()));
}

TEST_F(LoadLstm, HopelessSettingsAreErrors) {
  TrainOptions options = train_options();
  options.batch = 1'000'000;
  const auto too_large = train(options, console());
  ASSERT_FALSE(too_large);
  EXPECT_NE(too_large.error().message.find("are less than one batch of 1000000"), std::string::npos);

  options = train_options();
  options.learning_rate = 1e30;
  const auto diverged = train(options, console());
  ASSERT_FALSE(diverged);
  EXPECT_NE(diverged.error().message.find("the loss is no longer finite in epoch 1"), std::string::npos);
}

}  // namespace
}  // namespace ergometer::workload::load_lstm
