#include "engine/infer.hpp"

#include <algorithm>

#include "engine/train.hpp"
#include "support/temp_dir.hpp"
#include "workloads/engine/tiny.hpp"

namespace ergometer::workload {
namespace {

class Inference : public fixture::Quiet {
 protected:
  InferOptions infer_options() const {
    InferOptions options;
    options.data.folder = "points";
    options.data.batch = 8;
    return options;
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Workload workload_ = fixture::tiny();
  test::TempDir folder_;
};

TEST_F(Inference, GivesTheValidationOfTheTraining) {
  TrainOptions training = train_options();
  training.checkpoint = path("net.pt");
  const auto trained = train(workload_, training, {}, console());
  ASSERT_TRUE(trained);
  EXPECT_EQ(fixture::opened_state, "scales of points");  // of the validation data
  for (const std::int64_t workers : {0, 2}) {
    InferOptions options = infer_options();
    options.checkpoint = path("net.pt");
    options.output = path("rows.csv");
    options.workers = workers;
    options.warm_up = 2;
    fixture::opened_state.clear();
    fixture::faults.loads = 0;
    const auto report = infer(workload_, options, console());
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(fixture::opened_state, "scales of points");
    EXPECT_EQ(fixture::faults.loads, 2 + 3 + 3);  // warm-up, predictions, scores
    EXPECT_EQ(report->samples, 23);
    EXPECT_EQ(report->tokens, 46);
    EXPECT_EQ(report->latencies.size(), 3U);  // 8, 8, 7; those of the warm-up do not count
    ASSERT_TRUE(report->accuracy);
    EXPECT_EQ(report->loss, trained->epochs.back().validation_loss);
    EXPECT_EQ(report->accuracy, trained->epochs.back().validation_accuracy);
    EXPECT_EQ(report->baselines, trained->baselines);
    const std::string rows = folder_.read("rows.csv");
    EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 23);
    // The rows' accuracy is that of the second pass, so the rows are the right samples' ones.
    std::istringstream lines(rows);
    int sample = 0;
    int predicted = 0;
    int right = 0;
    int number = 0;
    for (char comma = 0; lines >> sample >> comma >> predicted; ++number) {
      EXPECT_EQ(sample, number);
      right += predicted == sample % 3 ? 1 : 0;
    }
    EXPECT_NEAR(right / 23.0, *report->accuracy, 1e-9);
  }
  EXPECT_NE(out_.str().find("tiny on cpu"), std::string::npos);
  EXPECT_NE(out_.str().find(" points/s"), std::string::npos);
  EXPECT_NE(out_.str().find("p99 "), std::string::npos);
  EXPECT_EQ(notes_.str(), "");
}

TEST_F(Inference, WithoutCheckpointIsNoted) {
  const auto report = infer(workload_, infer_options(), console());
  ASSERT_TRUE(report);
  EXPECT_NE(notes_.str().find("initial weights"), std::string::npos) << notes_.str();
}

TEST_F(Inference, StepsBoundTheBatchesAndTheSecondPassIsOptional) {
  InferOptions options = infer_options();
  options.steps = 2;
  const auto bounded = infer(workload_, options, console());
  ASSERT_TRUE(bounded);
  EXPECT_EQ(bounded->samples, 16);
  EXPECT_EQ(bounded->baselines[0].second, 16);
  options.validate = false;
  const auto single = infer(workload_, options, console());
  ASSERT_TRUE(single);
  EXPECT_FALSE(single->loss);
}

TEST_F(Inference, WritesNoPredictionsWhereThereAreNone) {
  workload_.write_predictions = nullptr;
  InferOptions options = infer_options();
  options.output = path("rows.csv");
  const auto report = infer(workload_, options, console());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().fault, Fault::usage);
}

// Scores over five words for two tokens of each sample: word 3 of the first, word 1 of the second.
class TokenScores final : public Task {
 public:
  TokenScores() : network_(std::make_shared<torch::nn::Module>()) {}
  torch::nn::Module& network() override { return *network_; }
  Outcome loss(const Batch&) override { return {torch::zeros({}), {}, {}}; }
  torch::Tensor predict(const Batch& batch) override {
    torch::Tensor scores = torch::zeros({batch.tensors[0].size(0), 2, 5});
    scores.select(1, 0).select(1, 3).fill_(1);
    scores.select(1, 1).select(1, 1).fill_(1);
    return scores;
  }

 private:
  std::shared_ptr<torch::nn::Module> network_;
};

class Keeper final : public PredictionWriter {
 public:
  static inline torch::Tensor kept;
  Result<Done> write(const std::vector<std::int64_t>&, const torch::Tensor& predictions) override {
    kept = predictions.clone();
    return Done{};
  }
  Result<Done> close() override { return Done{}; }
};

TEST_F(Inference, OfScoresOverAVocabularyTheLikeliestWordsAreFetched) {
  workload_.make_task = [](const DataOptions&) -> std::unique_ptr<Task> { return std::make_unique<TokenScores>(); };
  workload_.write_predictions = [](const std::string&, const DataSet&) -> Result<std::unique_ptr<PredictionWriter>> {
    return std::unique_ptr<PredictionWriter>(std::make_unique<Keeper>());
  };
  InferOptions options = infer_options();
  options.output = path("words");
  options.steps = 1;
  options.validate = false;
  const auto report = infer(workload_, options, console());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(torch::equal(Keeper::kept, torch::tensor({3, 1}).expand({8, 2}))) << Keeper::kept;
}

TEST_F(Inference, AnErrorOfTheDataStops) {
  fixture::faults.broken_sample = 20;
  const auto report = infer(workload_, infer_options(), console());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message, "points.csv:22: broken");
}

}  // namespace
}  // namespace ergometer::workload
