#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "language/data/masking.hpp"
#include "language/networks/attention.hpp"
#include "language/networks/masked_model.hpp"
#include "language/workloads.hpp"

namespace ergometer::workload::language {
namespace {

std::unique_ptr<Task> make(const Workload& workload) {
  torch::manual_seed(1);
  return workload.make_task(DataOptions{});
}

std::int64_t parameters(torch::nn::Module& network) {
  std::int64_t count = 0;
  for (const auto& parameter : network.parameters()) count += parameter.numel();
  return count;
}

// Some positions of a small batch are masked; padding rows have no labels.
Batch small_batch(std::int64_t padding = 0) {
  torch::manual_seed(2);
  torch::Tensor ids = torch::randint(1000, 30000, {2, 16}, torch::kInt64);
  torch::Tensor labels = torch::full({2, 16}, kNotScored, torch::kInt64);
  for (const std::int64_t place : {2, 5, 11}) {
    labels.select(1, place).copy_(ids.select(1, place));
    ids.select(1, place).fill_(103);
  }
  Batch batch;
  batch.tensors = {torch::cat({ids, torch::zeros({padding, 16}, torch::kInt64)}),
                   torch::cat({labels, torch::full({padding, 16}, kNotScored, torch::kInt64)})};
  batch.samples = 2;
  batch.tokens = 32;
  return batch;
}

// Losses of a few steps on one batch.
std::vector<double> train(Task& task, int steps) {
  const Batch batch = small_batch();
  task.network().train();
  torch::optim::AdamW optimiser(task.network().parameters(), torch::optim::AdamWOptions(3e-4));
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    optimiser.zero_grad();
    const Outcome outcome = task.loss(batch);
    EXPECT_FALSE(outcome.correct.defined());
    outcome.loss.backward();
    for (const auto& parameter : task.network().parameters()) EXPECT_TRUE(parameter.grad().defined());
    optimiser.step();
    losses.push_back(outcome.loss.item<double>());
  }
  return losses;
}

using Shapes = std::map<std::string, std::vector<std::int64_t>>;

void add_linear(Shapes& shapes, const std::string& name, std::int64_t inputs, std::int64_t outputs) {
  shapes[name + ".weight"] = {outputs, inputs};
  shapes[name + ".bias"] = {outputs};
}

void add_norm(Shapes& shapes, const std::string& name) {
  shapes[name + ".weight"] = {768};
  shapes[name + ".bias"] = {768};
}

// As transformers 5.17 lists them in named_parameters().
Shapes bert_shapes() {
  Shapes shapes = {{"bert.embeddings.word_embeddings.weight", {30522, 768}},
                   {"bert.embeddings.position_embeddings.weight", {512, 768}},
                   {"bert.embeddings.token_type_embeddings.weight", {2, 768}},
                   {"cls.predictions.bias", {30522}}};
  add_norm(shapes, "bert.embeddings.LayerNorm");
  for (int i = 0; i < 12; ++i) {
    const std::string layer = "bert.encoder.layer." + std::to_string(i);
    for (const char* name : {"query", "key", "value"}) add_linear(shapes, layer + ".attention.self." + name, 768, 768);
    add_linear(shapes, layer + ".attention.output.dense", 768, 768);
    add_norm(shapes, layer + ".attention.output.LayerNorm");
    add_linear(shapes, layer + ".intermediate.dense", 768, 3072);
    add_linear(shapes, layer + ".output.dense", 3072, 768);
    add_norm(shapes, layer + ".output.LayerNorm");
  }
  add_linear(shapes, "cls.predictions.transform.dense", 768, 768);
  add_norm(shapes, "cls.predictions.transform.LayerNorm");
  return shapes;
}

Shapes distilbert_shapes() {
  Shapes shapes = {{"distilbert.embeddings.word_embeddings.weight", {30522, 768}},
                   {"distilbert.embeddings.position_embeddings.weight", {512, 768}},
                   {"vocab_projector.bias", {30522}}};
  add_norm(shapes, "distilbert.embeddings.LayerNorm");
  for (int i = 0; i < 6; ++i) {
    const std::string layer = "distilbert.transformer.layer." + std::to_string(i);
    for (const char* name : {"q_lin", "k_lin", "v_lin", "out_lin"}) {
      add_linear(shapes, layer + ".attention." + name, 768, 768);
    }
    add_norm(shapes, layer + ".sa_layer_norm");
    add_linear(shapes, layer + ".ffn.lin1", 768, 3072);
    add_linear(shapes, layer + ".ffn.lin2", 3072, 768);
    add_norm(shapes, layer + ".output_layer_norm");
  }
  add_linear(shapes, "vocab_transform", 768, 768);
  add_norm(shapes, "vocab_layer_norm");
  return shapes;
}

Shapes shapes_of(torch::nn::Module& network) {
  Shapes shapes;
  for (const auto& parameter : network.named_parameters()) shapes[parameter.key()] = parameter->sizes().vec();
  return shapes;
}

TEST(Bert, ParametersAreTheReferencesAndTrainingLearns) {
  const auto task = make(kBertBase);
  EXPECT_EQ(parameters(task->network()), 109'514'298);
  EXPECT_EQ(kBertBase.parameters, 109'514'298);
  EXPECT_EQ(shapes_of(task->network()), bert_shapes());
  EXPECT_EQ(task->network().named_buffers().size(), 0U);
  const auto losses = train(*task, 3);
  EXPECT_NEAR(losses.front(), std::log(30522.0), 0.6);  // knows nothing yet
  EXPECT_LT(losses.back(), losses.front() - 0.5);
}

class DistilBert : public testing::Test {
 protected:
  static void SetUpTestSuite() { task_ = make(kDistilbert).release(); }
  static void TearDownTestSuite() {
    delete task_;
    task_ = nullptr;
  }
  static Task* task_;
};
Task* DistilBert::task_ = nullptr;

TEST_F(DistilBert, ParametersAreTheReferences) {
  EXPECT_EQ(parameters(task_->network()), 66'985'530);
  EXPECT_EQ(kDistilbert.parameters, 66'985'530);
  EXPECT_EQ(shapes_of(task_->network()), distilbert_shapes());
  EXPECT_EQ(task_->network().named_buffers().size(), 0U);
}

TEST_F(DistilBert, InitialWeightsAreSmallAndBiasesZero) {
  const auto named = task_->network().named_parameters();
  EXPECT_NEAR(named["distilbert.transformer.layer.5.ffn.lin2.weight"].std().item<double>(), 0.02, 2e-4);
  EXPECT_NEAR(named["distilbert.embeddings.position_embeddings.weight"].std().item<double>(), 0.02, 2e-4);
  EXPECT_EQ(named["distilbert.embeddings.word_embeddings.weight"][0].abs().max().item<double>(), 0.0);
  EXPECT_EQ(named["vocab_transform.bias"].abs().max().item<double>(), 0.0);
  EXPECT_EQ(named["vocab_layer_norm.weight"].min().item<double>(), 1.0);
}

TEST_F(DistilBert, PaddingChangesNothing) {
  task_->network().eval();
  const torch::NoGradGuard no_gradient;
  const Outcome plain = task_->loss(small_batch());
  const Outcome padded = task_->loss(small_batch(2));
  EXPECT_NEAR(plain.loss.item<double>(), padded.loss.item<double>(), 1e-5);
  EXPECT_EQ(plain.scored.item<double>(), 6);
  EXPECT_EQ(padded.scored.item<double>(), 6);
  EXPECT_EQ(padded.correct.item<double>(), plain.correct.item<double>());
}

TEST_F(DistilBert, LossAndCorrectAreThoseOfTheLogits) {
  task_->network().eval();
  const torch::NoGradGuard no_gradient;
  Batch batch = small_batch();
  const torch::Tensor logits = task_->predict(batch);
  ASSERT_EQ(logits.sizes(), (std::vector<std::int64_t>{2, 16, 30522}));
  // Two of the six labels become what the network says.
  for (const auto& [row, place] : {std::pair{0, 2}, {1, 11}}) {
    batch.tensors[1][row][place] = logits[row][place].argmax();
  }
  double expected = 0;
  for (std::int64_t row = 0; row < 2; ++row) {
    for (const std::int64_t place : {2, 5, 11}) {
      const torch::Tensor probabilities = torch::log_softmax(logits[row][place], 0);
      expected -= probabilities[batch.tensors[1][row][place].item<std::int64_t>()].item<double>() / 6;
    }
  }
  const Outcome outcome = task_->loss(batch);
  EXPECT_NEAR(outcome.loss.item<double>(), expected, 1e-4);
  EXPECT_EQ(outcome.correct.item<double>(), 2);
  EXPECT_EQ(outcome.correct.scalar_type(), torch::kFloat32);
}

TEST_F(DistilBert, EveryPositionSeesEveryOther) {
  task_->network().eval();
  const torch::NoGradGuard no_gradient;
  Batch batch = small_batch();
  const torch::Tensor before = task_->predict(batch);
  batch.tensors[0][0][15] = 2001;
  const torch::Tensor change = (task_->predict(batch) - before).abs().amax(-1);
  EXPECT_TRUE(torch::all(change[0].gt(0)).item<bool>());
  EXPECT_TRUE(torch::all(change[1].eq(0)).item<bool>());  // other samples do not
}

// Last of the suite: it changes the weights.
TEST_F(DistilBert, TrainingLearns) {
  const auto losses = train(*task_, 4);
  EXPECT_NEAR(losses.front(), std::log(30522.0), 0.6);
  EXPECT_LT(losses.back(), losses.front() - 0.5);
}

TEST(Attention, IsTheFormulaOfEachHead) {
  torch::manual_seed(3);
  const torch::Tensor query = torch::randn({2, 5, 12});
  const torch::Tensor key = torch::randn({2, 5, 12});
  const torch::Tensor value = torch::randn({2, 5, 12});
  const torch::Tensor result = attend(query, key, value, 3, 0.0);
  ASSERT_EQ(result.sizes(), (std::vector<std::int64_t>{2, 5, 12}));
  for (std::int64_t sample = 0; sample < 2; ++sample) {
    for (std::int64_t head = 0; head < 3; ++head) {
      const auto part = [&](const torch::Tensor& all) { return all[sample].slice(1, head * 4, head * 4 + 4); };
      const torch::Tensor weights = torch::softmax(torch::mm(part(query), part(key).t()) / 2.0, 1);
      EXPECT_TRUE(torch::allclose(part(result), torch::mm(weights, part(value)), 1e-5, 1e-6));
    }
  }
}

TEST(Attention, DropsOnlyInTraining) {
  torch::nn::Dropout dropout(0.1);
  EXPECT_EQ(rate_now(dropout), 0.1);
  dropout->eval();
  EXPECT_EQ(rate_now(dropout), 0.0);
  torch::manual_seed(3);
  const torch::Tensor ones = torch::ones({1, 64, 8});
  EXPECT_TRUE(torch::allclose(attend(ones, ones, ones, 2, 0.0), ones));
  // Each output is the mean of 64 ones, of which a tenth is dropped and the others grow by 1/0.9.
  const torch::Tensor dropped = attend(ones, ones, ones, 2, 0.1);
  EXPECT_FALSE(torch::allclose(dropped, ones));
  EXPECT_NEAR(dropped.mean().item<double>(), 1.0, 0.02);
}

}  // namespace
}  // namespace ergometer::workload::language
