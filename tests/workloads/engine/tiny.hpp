// A workload small enough to train in a test: points of three classes, a network with batch normalisation and dropout,
// and faults on demand.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "core/workload.hpp"
#include "engine/options.hpp"

namespace ergometer::workload::fixture {

// What else shall happen; set by a test and reset by Quiet.
struct Faults {
  std::atomic<std::int64_t> broken_sample{-1};      // its batch is an error
  std::atomic<std::int64_t> throwing_sample{-1};    // its batch throws
  std::atomic<std::int64_t> unreadable_sample{-1};  // is skipped, or an error if strict
  std::atomic<std::int64_t> nan_sample{-1};         // is not a number
  std::atomic<std::int64_t> load_ms{0};             // a batch takes at least so long to load
  std::atomic<std::int64_t> loads{0};               // counted
  std::atomic<std::int64_t> open{0};                // data sets that live
};
inline Faults faults;
inline std::string opened_state;  // DataOptions::state with which the last data set was opened

inline constexpr std::int64_t kFeatures = 6;

class Points final : public DataSet {
 public:
  Points(const DataOptions& options, Split split) : options_(options), split_(split) { ++faults.open; }
  ~Points() override { --faults.open; }

  std::int64_t size() const override { return split_ == Split::train ? 100 : 23; }
  std::string state() const override { return "scales of " + options_.folder; }
  std::vector<std::string> notes() const override {
    if (met_unreadable_) return {"a point is unreadable"};
    return {};
  }
  std::vector<std::pair<std::string, double>> baselines(const std::vector<std::int64_t>& samples) const override {
    return {{"mean_predictor", static_cast<double>(samples.size())}};
  }

  Result<Batch> load(const std::vector<std::int64_t>& samples, std::uint64_t seed) const override {
    ++faults.loads;
    std::this_thread::sleep_for(std::chrono::milliseconds(faults.load_ms));
    const auto count = static_cast<std::int64_t>(samples.size());
    Batch batch;
    batch.tensors = {torch::zeros({count, kFeatures}), torch::zeros({count}, torch::kInt64), torch::ones({count})};
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t sample = samples[static_cast<std::size_t>(i)];
      if (sample == faults.broken_sample) {
        return Error{Fault::data, "points.csv:" + std::to_string(sample + 2) + ": broken", {}};
      }
      if (sample == faults.throwing_sample) throw std::runtime_error("the library failed");
      if (sample == faults.unreadable_sample) {
        if (options_.strict) return Error{Fault::data, "points.csv: unreadable", "leave --strict out"};
        ++batch.skipped;
        met_unreadable_ = true;
        batch.tensors[2][i] = 0;
        continue;
      }
      fill(batch, i, sample, seed);
    }
    batch.samples = count - batch.skipped;
    batch.tokens = 2 * batch.samples;
    return batch;
  }

 private:
  // A place by the sample's class and number, moved a little by the batch's seed.
  static void fill(Batch& batch, std::int64_t row, std::int64_t sample, std::uint64_t seed) {
    auto values = batch.tensors[0].accessor<float, 2>();
    for (std::int64_t k = 0; k < kFeatures; ++k) {
      const auto noise = static_cast<float>((seed >> (8 * k)) & 0xFF) / 2550.0F;
      values[row][k] = (k == sample % 3 ? 1.0F : 0.0F) + static_cast<float>((sample * (k + 3)) % 11) / 20.0F + noise;
    }
    if (sample == faults.nan_sample) values[row][0] = std::numeric_limits<float>::quiet_NaN();
    batch.tensors[1].accessor<std::int64_t, 1>()[row] = sample % 3;
  }

  DataOptions options_;
  Split split_;
  mutable std::atomic<bool> met_unreadable_{false};
};

struct ClassifierImpl : torch::nn::Module {
  ClassifierImpl() {
    first = register_module("first", torch::nn::Linear(kFeatures, 8));
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    dropout = register_module("dropout", torch::nn::Dropout(0.3));
    last = register_module("last", torch::nn::Linear(8, 3));
  }
  torch::Tensor forward(const torch::Tensor& input) {
    return last->forward(dropout->forward(torch::relu(norm->forward(first->forward(input)))));
  }
  torch::nn::Linear first{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout dropout{nullptr};
  torch::nn::Linear last{nullptr};
};
TORCH_MODULE(Classifier);

class Classify final : public Task {
 public:
  torch::nn::Module& network() override { return *network_; }
  Outcome loss(const Batch& batch) override {
    const torch::Tensor logits = predict(batch);
    const torch::Tensor& weights = batch.tensors[2];
    const torch::Tensor each = torch::nn::functional::cross_entropy(
        logits, batch.tensors[1], torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
    const torch::Tensor right = (logits.argmax(1) == batch.tensors[1]).to(torch::kFloat32);
    return {(each * weights).sum() / weights.sum().clamp_min(1), (right * weights).sum(), weights.sum()};
  }
  torch::Tensor predict(const Batch& batch) override { return network_->forward(batch.tensors[0]); }

 private:
  Classifier network_;
};

class Rows final : public PredictionWriter {
 public:
  explicit Rows(const std::string& path) : file_(path) {}
  Result<Done> write(const std::vector<std::int64_t>& samples, const torch::Tensor& predictions) override {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      file_ << samples[i] << ',' << predictions[static_cast<std::int64_t>(i)].argmax().item<std::int64_t>() << '\n';
    }
    return Done{};
  }
  Result<Done> close() override {
    file_.close();
    return Done{};
  }

 private:
  std::ofstream file_;
};

inline Workload tiny() {
  Workload workload;
  workload.name = "tiny";
  workload.unit = "points";
  workload.batch = 8;
  workload.optimiser.rule = Rule::sgd;
  workload.optimiser.momentum = 0.9;
  workload.optimiser.cosine = true;
  workload.make_task = [](const DataOptions&) -> std::unique_ptr<Task> { return std::make_unique<Classify>(); };
  workload.open_data = [](const DataOptions& options, Split split) -> Result<std::unique_ptr<DataSet>> {
    opened_state = options.state;
    return std::unique_ptr<DataSet>(std::make_unique<Points>(options, split));
  };
  workload.write_predictions = [](const std::string& path,
                                  const DataSet&) -> Result<std::unique_ptr<PredictionWriter>> {
    return std::unique_ptr<PredictionWriter>(std::make_unique<Rows>(path));
  };
  return workload;
}

// No faults, and a console to look at.
class Quiet : public testing::Test {
 protected:
  Quiet() {
    faults.broken_sample = faults.throwing_sample = faults.unreadable_sample = faults.nan_sample = -1;
    faults.loads = faults.load_ms = 0;
  }
  Console console() { return {out_, notes_}; }
  static TrainOptions train_options() {
    TrainOptions options;
    options.data.folder = "points";
    options.data.batch = 8;
    options.epochs = 4;
    options.learning_rate = 0.05;
    return options;
  }

  std::ostringstream out_;
  std::ostringstream notes_;
};

}  // namespace ergometer::workload::fixture
