// Samples for masked language modelling: a long row of tokens cut into sequences of equal length. Used by open_data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/data_set.hpp"
#include "language/text/vocabulary.hpp"

namespace ergometer::workload::language {

inline constexpr std::int64_t kDefaultSequence = 512;
inline constexpr std::int64_t kLongestSequence = 512;

// A usage error for a sequence length that the networks do not have (3 to 512); 0 stands for the default.
[[nodiscard]] Result<Done> check_sequence(std::int64_t sequence);

// Where samples come from; the text's end that fills no sequence is left out.
struct TokenRow {
  std::vector<TokenId> tokens;
  SpecialTokens specials;
  std::uint32_t vocabulary_size = 0;
  std::string name;   // of the source, for messages
  std::string state;  // DataSet::state()
  std::vector<std::string> notes;
};

// Sample n is [CLS], the n-th (sequence - 2) tokens of the row, [SEP]: no sentence pairs, no padding, no attention
// mask, as in RoBERTa's full sequences (Liu et al. 2019, arXiv:1907.11692). Batch::tensors are input_ids and labels,
// both int64 [B, sequence] (labels: kNotScored where nothing is to be guessed); B is the number of samples, with
// DataOptions::graphs always options.batch: rows of [PAD] without labels fill it up.
class PackedSet : public DataSet {
 public:
  // options.sequence has passed check_sequence(). An error if no full sequence is in the row.
  [[nodiscard]] static Result<std::unique_ptr<DataSet>> make(TokenRow row, const DataOptions& options);

  std::int64_t size() const override;
  Result<Batch> load(const std::vector<std::int64_t>& samples, std::uint64_t seed) const override;
  std::string state() const override { return row_.state; }
  std::vector<std::string> notes() const override { return row_.notes; }
  // "unigram_predictor": cross-entropy when every token is guessed by its frequency in this set.
  std::vector<std::pair<std::string, double>> baselines(const std::vector<std::int64_t>& samples) const override;

 private:
  PackedSet(TokenRow row, const DataOptions& options);
  std::int64_t body() const { return sequence_ - 2; }
  void fill(std::int64_t sample, std::uint64_t seed, std::int64_t* ids, std::int64_t* labels) const;

  TokenRow row_;
  std::int64_t sequence_;
  std::int64_t padded_batch_;  // 0: batches are not filled up
};

}  // namespace ergometer::workload::language
