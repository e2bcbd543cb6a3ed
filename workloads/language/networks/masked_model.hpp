// What BERT and DistilBERT have in common: size, interface. Used by the task and by both networks' files.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>

namespace ergometer::workload::language {

// Sizes of bert-base-uncased and distilbert-base-uncased (their published configurations).
inline constexpr std::int64_t kVocabularySize = 30522;
inline constexpr std::int64_t kPositions = 512;
inline constexpr std::int64_t kHidden = 768;
inline constexpr std::int64_t kHeads = 12;
inline constexpr std::int64_t kFeedForward = 3072;
inline constexpr double kDropout = 0.1;
inline constexpr double kLayerNormEps = 1e-12;

// A linear layer whose bias belongs to the product's operator. torch::nn::Linear adds it in an operator of its own to
// inputs of three dimensions, which cost 8 % of a training step on an H200.
struct AffineImpl : torch::nn::LinearImpl {
  using torch::nn::LinearImpl::LinearImpl;
  torch::Tensor forward(const torch::Tensor& input) { return torch::linear(input, weight, bias); }
};
TORCH_MODULE(Affine);

class MaskedModel : public torch::nn::Module {
 public:
  // Token numbers, int64 [B, S], S at most kPositions, to logits over the vocabulary, [B, S, kVocabularySize]. Every
  // position attends to every other: there is no attention mask, for sequences are packed full.
  virtual torch::Tensor forward(const torch::Tensor& ids) = 0;
};

// Parameters and buffers are named as in the state_dict of transformers 5.17 (BertForMaskedLM without pooler,
// DistilBertForMaskedLM). What it lists twice for one tensor is there once: the decoder's weight only as
// ...embeddings.word_embeddings.weight (not cls.predictions.decoder.weight, vocab_projector.weight), BERT's decoder
// bias only as cls.predictions.bias. New networks have random weights from LibTorch's generator.
[[nodiscard]] std::shared_ptr<MaskedModel> make_bert_base();
[[nodiscard]] std::shared_ptr<MaskedModel> make_distilbert();

}  // namespace ergometer::workload::language
