#include "engine/train.hpp"

#include <cmath>

#include "engine/checkpoint.hpp"
#include "support/temp_dir.hpp"
#include "workloads/engine/tiny.hpp"

namespace ergometer::workload {
namespace {

using fixture::faults;

class Training : public fixture::Quiet {
 protected:
  Result<TrainReport> run(const TrainOptions& options) { return train(workload_, options, {}, console()); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Workload workload_ = fixture::tiny();
  test::TempDir folder_;
};

void expect_same(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(torch::equal(a[i].second, b[i].second)) << a[i].first;
  }
}

TEST_F(Training, LearnsAndReports) {
  TrainOptions options = train_options();
  options.epochs = 12;
  const auto report = run(options);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->epochs.size(), 12U);
  const EpochReport& last = report->epochs.back();
  EXPECT_EQ(last.steps, 12);
  EXPECT_EQ(last.samples, 96);
  EXPECT_EQ(last.tokens, 192);
  EXPECT_LT(last.loss, 0.5 * report->epochs.front().loss);
  EXPECT_GT(*last.accuracy, 0.8);
  EXPECT_GT(*last.validation_accuracy, 0.9);
  EXPECT_EQ(report->baselines[0].second, 23);
  const std::string out = out_.str();
  EXPECT_EQ(out.rfind("tiny on cpu, 1 thread, fp32: 100 points, 23 for validation, 12 steps of 8 an epoch\n", 0), 0U)
      << out;
  EXPECT_NE(out.find("\nepoch 12/12: train loss 0."), std::string::npos) << out;
  EXPECT_NE(out.find("(mean predictor 23.00000), "), std::string::npos) << out;
  EXPECT_NE(out.find(" %, validation loss 0."), std::string::npos) << out;
  EXPECT_EQ(notes_.str(), "");
}

TEST_F(Training, TheNumberOfWorkersChangesNothing) {
  std::vector<TrainReport> reports;
  for (const std::int64_t workers : {0, 1, 4}) {
    TrainOptions options = train_options();
    options.workers = workers;
    const auto report = run(options);
    ASSERT_TRUE(report);
    reports.push_back(*report);
  }
  for (std::size_t epoch = 0; epoch < 4; ++epoch) {
    for (const std::size_t other : {1, 2}) {
      EXPECT_EQ(reports[other].epochs[epoch].loss, reports[0].epochs[epoch].loss);
      EXPECT_EQ(reports[other].epochs[epoch].validation_loss, reports[0].epochs[epoch].validation_loss);
    }
  }
}

TEST_F(Training, AResumedTrainingEndsAsAnUninterruptedOne) {
  for (const Rule rule : {Rule::sgd, Rule::adam}) {
    workload_.optimiser.rule = rule;
    TrainOptions options = train_options();
    options.checkpoint = path("whole.pt");
    const auto whole = run(options);
    ASSERT_TRUE(whole) << whole.error().message;
    // Stopped in the third epoch by a batch that cannot be read; then that is mended.
    options.checkpoint = path("parts.pt");
    Workload failing = workload_;
    failing.open_data = [](const DataOptions& of_data, Split split) -> Result<std::unique_ptr<DataSet>> {
      class Stopping final : public DataSet {
       public:
        Stopping(const DataOptions& o, Split s) : points_(o, s), stops_(s == Split::train) {}
        std::int64_t size() const override { return points_.size(); }
        std::string state() const override { return points_.state(); }
        Result<Batch> load(const std::vector<std::int64_t>& samples, std::uint64_t seed) const override {
          if (stops_ && ++loads_ > 2 * 12 + 5) return Error{Fault::data, "stopped", {}};
          return points_.load(samples, seed);
        }

       private:
        fixture::Points points_;
        bool stops_;
        mutable int loads_ = 0;
      };
      return std::unique_ptr<DataSet>(std::make_unique<Stopping>(of_data, split));
    };
    const auto stopped = train(failing, options, {}, console());
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().message, "stopped");
    ASSERT_EQ(load_checkpoint(path("parts.pt"), "tiny")->epoch, 2);

    options.resume = path("parts.pt");
    torch::manual_seed(999);  // what another process would have
    const auto resumed = run(options);
    ASSERT_TRUE(resumed) << resumed.error().message;
    ASSERT_EQ(resumed->epochs.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(resumed->epochs[i].loss, whole->epochs[i + 2].loss);
      EXPECT_EQ(resumed->epochs[i].validation_loss, whole->epochs[i + 2].validation_loss);
    }
    const auto one = load_checkpoint(path("whole.pt"), "tiny");
    const auto other = load_checkpoint(path("parts.pt"), "tiny");
    ASSERT_TRUE(one && other);
    EXPECT_EQ(other->epoch, 4);
    expect_same(one->network, other->network);
    expect_same(one->optimiser, other->optimiser);
  }
}

TEST_F(Training, OnlyTheSameTrainingIsResumed) {
  TrainOptions options = train_options();
  options.epochs = 2;
  options.checkpoint = path("net.pt");
  ASSERT_TRUE(run(options));
  options.checkpoint.clear();
  options.resume = path("net.pt");
  const auto fails = [&](TrainOptions changed, const std::string& text) {
    const auto report = run(changed);
    ASSERT_FALSE(report) << text;
    EXPECT_NE(report.error().message.find(text), std::string::npos) << report.error().message;
  };
  fails(options, "its 2 epochs are done already");
  options.epochs = 3;
  fails(options, "was trained with epochs 2, not 3");  // the cosine depends on them
  workload_.optimiser.cosine = false;
  TrainOptions changed = options;
  changed.data.batch = 4;
  fails(changed, "was trained with batch 8, not 4");
  changed = options;
  changed.data.seed = 1;
  fails(changed, "was trained with seed 42, not 1");
  changed = options;
  changed.learning_rate = 0.1;
  fails(changed, "was trained with learning rate 0.05, not 0.1");
  changed = options;
  changed.data.folder = "others";
  fails(changed, "was trained on other data");
  workload_.name = "vgg16";
  fails(options, "not a checkpoint of vgg16: it is one of tiny");
  workload_.name = "tiny";
  EXPECT_TRUE(run(options));
}

TEST_F(Training, WarmingUpChangesNothing) {
  TrainOptions options = train_options();
  const auto cold = run(options);
  options.warm_up = 5;
  const auto warm = run(options);
  ASSERT_TRUE(cold && warm);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(warm->epochs[i].loss, cold->epochs[i].loss);
    EXPECT_EQ(warm->epochs[i].validation_loss, cold->epochs[i].validation_loss);
  }
}

TEST_F(Training, ALossThatIsNotFiniteStops) {
  faults.nan_sample = 17;
  const auto report = run(train_options());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message.rfind("the loss is no longer finite in epoch 1, step ", 0), 0U)
      << report.error().message;
  EXPECT_EQ(report.error().hint, "lower --lr");
}

TEST_F(Training, UnreadableSamplesAreCountedAndStrictStops) {
  faults.unreadable_sample = 17;
  TrainOptions options = train_options();
  options.epochs = 2;
  options.data.batch = 10;
  const auto report = run(options);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->epochs[0].skipped, 1);
  EXPECT_EQ(report->epochs[0].samples, 99);
  EXPECT_EQ(notes_.str(),
            "note: epoch 1: 1 samples could not be read and do not count\n"
            "note: a point is unreadable\n"
            "note: epoch 2: 1 samples could not be read and do not count\n");
  options.data.strict = true;
  const auto strict = run(options);
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().message, "points.csv: unreadable");
}

TEST_F(Training, ABatchLargerThanTheDataIsAnError) {
  TrainOptions options = train_options();
  options.data.batch = 101;
  const auto report = run(options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message, "points: 100 points are less than one batch of 101");
}

TEST_F(Training, ValidationCanBeSmallerOrLeftOut) {
  TrainOptions options = train_options();
  options.epochs = 1;
  options.validate_samples = 5;
  const auto some = run(options);
  ASSERT_TRUE(some);
  EXPECT_EQ(some->baselines[0].second, 5);
  options.validate = false;
  const auto none = run(options);
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->epochs[0].validation_loss);
  EXPECT_TRUE(none->baselines.empty());
  EXPECT_EQ(none->epochs[0].loss, some->epochs[0].loss);
}

TEST_F(Training, StepsBoundTheEpoch) {
  TrainOptions options = train_options();
  options.epochs = 1;
  options.steps = 3;
  const auto report = run(options);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->epochs[0].samples, 24);
}

TEST_F(Training, WaitingForDataIsTold) {
  TrainOptions options = train_options();
  options.epochs = 1;
  options.steps = 4;
  options.validate = false;
  options.workers = 0;
  fixture::faults.load_ms = 30;
  const auto report = run(options);
  ASSERT_TRUE(report);
  const EpochReport& epoch = report->epochs[0];
  EXPECT_GE(epoch.data_wait_share * epoch.seconds, 4 * 0.030);  // what each load takes at least
  EXPECT_LE(epoch.data_wait_share, 1);
  EXPECT_NE(out_.str().find(" % waiting for data)"), std::string::npos) << out_.str();
}

// A network that is one weight with a gradient of 1 in every step: what is left of it tells the learning rates.
class OneWeight final : public Task {
 public:
  OneWeight() : network_(std::make_shared<torch::nn::Module>()) {
    weight_ = network_->register_parameter("weight", torch::zeros({1}));
  }
  torch::nn::Module& network() override { return *network_; }
  Outcome loss(const Batch&) override { return {weight_.sum(), {}, {}}; }
  torch::Tensor predict(const Batch&) override { return weight_; }

 private:
  std::shared_ptr<torch::nn::Module> network_;
  torch::Tensor weight_;
};

TEST_F(Training, TheCosineFallsOverTheEpochs) {
  workload_.make_task = [](const DataOptions&) -> std::unique_ptr<Task> { return std::make_unique<OneWeight>(); };
  workload_.optimiser.momentum = 0;
  TrainOptions options = train_options();
  options.steps = 1;
  options.learning_rate = 1;
  options.checkpoint = path("net.pt");
  ASSERT_TRUE(run(options));
  const auto checkpoint = load_checkpoint(options.checkpoint, "tiny");
  ASSERT_TRUE(checkpoint);
  // (1 + cos(pi * k / 4)) / 2 for k = 0 .. 3 is 1, 0.8536, 0.5, 0.1464.
  EXPECT_NEAR(checkpoint->network[0].second.item<double>(), -2.5, 1e-6);
}

TEST_F(Training, ProgressIsForTerminalsOnly) {
  TrainOptions options = train_options();
  options.epochs = 1;
  ASSERT_TRUE(run(options));
  EXPECT_EQ(notes_.str(), "");
}

TEST_F(Training, GraphsNeedCuda) {
  TrainOptions options = train_options();
  options.graphs = true;
  const auto report = run(options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().fault, Fault::usage);
  EXPECT_EQ(report.error().message, "--compile graph needs --device cuda");
}

TEST_F(Training, TooLittleMemoryNamesTheBatchAndTheRemedy) {
  workload_.make_task = [](const DataOptions&) -> std::unique_ptr<Task> {
    static_cast<void>(torch::empty({std::int64_t{1} << 50}));  // 4 PiB
    return nullptr;
  };
  const auto report = run(train_options());
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("out of memory on cpu with batches of 8"), std::string::npos)
      << report.error().message;
  EXPECT_NE(report.error().hint.find("lower --batch"), std::string::npos);
}

}  // namespace
}  // namespace ergometer::workload
