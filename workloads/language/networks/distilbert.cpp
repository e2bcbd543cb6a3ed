// DistilBERT for masked language modelling (Sanh et al. 2019, arXiv:1910.01108): distilbert-base-uncased, 66,985,530
// parameters. Modules are cut and named as in transformers 5.17, models/distilbert. Against BERT: six layers, no
// segments, no dropout after the attention's output.
#include <torch/torch.h>

#include "language/networks/attention.hpp"
#include "language/networks/initial_weights.hpp"
#include "language/networks/masked_model.hpp"

namespace ergometer::workload::language {
namespace {

namespace nn = torch::nn;

constexpr int kDistilLayers = 6;

nn::LayerNorm distil_norm() { return nn::LayerNorm(nn::LayerNormOptions({kHidden}).eps(kLayerNormEps)); }

struct DistilEmbeddingsImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& ids) {
    return dropout(norm(words(ids) + positions->weight.slice(0, 0, ids.size(1))));
  }

  nn::Embedding words =
      register_module("word_embeddings", nn::Embedding(nn::EmbeddingOptions(kVocabularySize, kHidden).padding_idx(0)));
  nn::Embedding positions = register_module("position_embeddings", nn::Embedding(kPositions, kHidden));
  nn::LayerNorm norm = register_module("LayerNorm", distil_norm());
  nn::Dropout dropout = register_module("dropout", nn::Dropout(kDropout));
};
TORCH_MODULE(DistilEmbeddings);

struct DistilAttentionImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& hidden) {
    return output(attend(query(hidden), key(hidden), value(hidden), kHeads, rate_now(dropout)));
  }

  nn::Dropout dropout = register_module("dropout", nn::Dropout(kDropout));
  Affine query = register_module("q_lin", Affine(kHidden, kHidden));
  Affine key = register_module("k_lin", Affine(kHidden, kHidden));
  Affine value = register_module("v_lin", Affine(kHidden, kHidden));
  Affine output = register_module("out_lin", Affine(kHidden, kHidden));
};
TORCH_MODULE(DistilAttention);

struct DistilFeedForwardImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& hidden) { return dropout(second(torch::gelu(first(hidden)))); }

  nn::Dropout dropout = register_module("dropout", nn::Dropout(kDropout));
  Affine first = register_module("lin1", Affine(kHidden, kFeedForward));
  Affine second = register_module("lin2", Affine(kFeedForward, kHidden));
};
TORCH_MODULE(DistilFeedForward);

struct DistilLayerImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& hidden) {
    const torch::Tensor attended = attention_norm(attention(hidden) + hidden);
    return output_norm(feed_forward(attended) + attended);
  }

  DistilAttention attention = register_module("attention", DistilAttention());
  nn::LayerNorm attention_norm = register_module("sa_layer_norm", distil_norm());
  DistilFeedForward feed_forward = register_module("ffn", DistilFeedForward());
  nn::LayerNorm output_norm = register_module("output_layer_norm", distil_norm());
};
TORCH_MODULE(DistilLayer);

struct DistilTransformerImpl : nn::Module {
  DistilTransformerImpl() {
    for (int i = 0; i < kDistilLayers; ++i) layers->push_back(DistilLayer());
  }
  torch::Tensor forward(torch::Tensor hidden) {
    for (const auto& layer : *layers) hidden = layer->as<DistilLayerImpl>()->forward(hidden);
    return hidden;
  }

  nn::ModuleList layers = register_module("layer", nn::ModuleList());
};
TORCH_MODULE(DistilTransformer);

struct DistilBodyImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& ids) { return transformer(embeddings(ids)); }

  DistilEmbeddings embeddings = register_module("embeddings", DistilEmbeddings());
  DistilTransformer transformer = register_module("transformer", DistilTransformer());
};
TORCH_MODULE(DistilBody);

// The decoder: its weight is the word embeddings', its bias its own.
struct DistilProjectorImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& weight) {
    return torch::linear(hidden, weight, bias);
  }

  torch::Tensor bias = register_parameter("bias", torch::zeros(kVocabularySize));
};
TORCH_MODULE(DistilProjector);

class DistilBert : public MaskedModel {
 public:
  torch::Tensor forward(const torch::Tensor& ids) override {
    const torch::Tensor hidden = norm_(torch::gelu(transform_(body_(ids))));
    return projector_(hidden, body_->embeddings->words->weight);
  }

 private:
  DistilBody body_ = register_module("distilbert", DistilBody());
  Affine transform_ = register_module("vocab_transform", Affine(kHidden, kHidden));
  nn::LayerNorm norm_ = register_module("vocab_layer_norm", distil_norm());
  DistilProjector projector_ = register_module("vocab_projector", DistilProjector());
};

}  // namespace

std::shared_ptr<MaskedModel> make_distilbert() {
  auto network = std::make_shared<DistilBert>();
  set_initial_weights(*network);
  return network;
}

}  // namespace ergometer::workload::language
