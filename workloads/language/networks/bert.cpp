// BERT for masked language modelling (Devlin et al. 2018, arXiv:1810.04805): bert-base-uncased, 109,514,298 parameters.
// Modules are cut and named as in transformers 5.17, models/bert.
#include <torch/torch.h>

#include <string>

#include "language/networks/attention.hpp"
#include "language/networks/initial_weights.hpp"
#include "language/networks/masked_model.hpp"

namespace ergometer::workload::language {
namespace {

namespace nn = torch::nn;

constexpr int kLayers = 12;
constexpr std::int64_t kSegments = 2;

nn::LayerNorm layer_norm() { return nn::LayerNorm(nn::LayerNormOptions({kHidden}).eps(kLayerNormEps)); }

struct EmbeddingsImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& ids) {
    // All tokens are of segment 0, and positions count from 0: rows of the tables, without a lookup.
    const torch::Tensor place = positions->weight.slice(0, 0, ids.size(1)) + segments->weight.select(0, 0);
    return dropout(norm(words(ids) + place));
  }

  nn::Embedding words =
      register_module("word_embeddings", nn::Embedding(nn::EmbeddingOptions(kVocabularySize, kHidden).padding_idx(0)));
  nn::Embedding positions = register_module("position_embeddings", nn::Embedding(kPositions, kHidden));
  nn::Embedding segments = register_module("token_type_embeddings", nn::Embedding(kSegments, kHidden));
  nn::LayerNorm norm = register_module("LayerNorm", layer_norm());
  nn::Dropout dropout = register_module("dropout", nn::Dropout(kDropout));
};
TORCH_MODULE(Embeddings);

struct SelfAttentionImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& hidden) {
    return attend(query(hidden), key(hidden), value(hidden), kHeads, rate_now(dropout));
  }

  Affine query = register_module("query", Affine(kHidden, kHidden));
  Affine key = register_module("key", Affine(kHidden, kHidden));
  Affine value = register_module("value", Affine(kHidden, kHidden));
  nn::Dropout dropout = register_module("dropout", nn::Dropout(kDropout));
};
TORCH_MODULE(SelfAttention);

// A linear layer whose result is added to what the block began with, then normalised.
struct ResidualImpl : nn::Module {
  explicit ResidualImpl(std::int64_t inputs) : dense(register_module("dense", Affine(inputs, kHidden))) {}
  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& residual) {
    return norm(dropout(dense(input)) + residual);
  }

  Affine dense;
  nn::LayerNorm norm = register_module("LayerNorm", layer_norm());
  nn::Dropout dropout = register_module("dropout", nn::Dropout(kDropout));
};
TORCH_MODULE(Residual);

struct AttentionImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& hidden) { return output(self(hidden), hidden); }

  SelfAttention self = register_module("self", SelfAttention());
  Residual output = register_module("output", Residual(kHidden));
};
TORCH_MODULE(Attention);

struct IntermediateImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& hidden) { return torch::gelu(dense(hidden)); }

  Affine dense = register_module("dense", Affine(kHidden, kFeedForward));
};
TORCH_MODULE(Intermediate);

struct LayerImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& hidden) {
    const torch::Tensor attended = attention(hidden);
    return output(intermediate(attended), attended);
  }

  Attention attention = register_module("attention", Attention());
  Intermediate intermediate = register_module("intermediate", Intermediate());
  Residual output = register_module("output", Residual(kFeedForward));
};
TORCH_MODULE(Layer);

struct EncoderImpl : nn::Module {
  EncoderImpl() {
    for (int i = 0; i < kLayers; ++i) layers->push_back(Layer());
  }
  torch::Tensor forward(torch::Tensor hidden) {
    for (const auto& layer : *layers) hidden = layer->as<LayerImpl>()->forward(hidden);
    return hidden;
  }

  nn::ModuleList layers = register_module("layer", nn::ModuleList());
};
TORCH_MODULE(Encoder);

struct BodyImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& ids) { return encoder(embeddings(ids)); }

  Embeddings embeddings = register_module("embeddings", Embeddings());
  Encoder encoder = register_module("encoder", Encoder());
};
TORCH_MODULE(Body);

struct TransformImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& hidden) { return norm(torch::gelu(dense(hidden))); }

  Affine dense = register_module("dense", Affine(kHidden, kHidden));
  nn::LayerNorm norm = register_module("LayerNorm", layer_norm());
};
TORCH_MODULE(Transform);

struct PredictionsImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& decoder) {
    return torch::linear(transform(hidden), decoder, bias);
  }

  torch::Tensor bias = register_parameter("bias", torch::zeros(kVocabularySize));
  Transform transform = register_module("transform", Transform());
};
TORCH_MODULE(Predictions);

struct HeadImpl : nn::Module {
  Predictions predictions = register_module("predictions", Predictions());
};
TORCH_MODULE(Head);

class BertBase : public MaskedModel {
 public:
  torch::Tensor forward(const torch::Tensor& ids) override {
    return head_->predictions(body_(ids), body_->embeddings->words->weight);
  }

 private:
  Body body_ = register_module("bert", Body());
  Head head_ = register_module("cls", Head());
};

}  // namespace

std::shared_ptr<MaskedModel> make_bert_base() {
  auto network = std::make_shared<BertBase>();
  set_initial_weights(*network);
  return network;
}

}  // namespace ergometer::workload::language
