#include "language/data/synthetic.hpp"

#include <cmath>

#include "language/data/random.hpp"

namespace ergometer::workload::language {
namespace {

constexpr std::uint64_t kSeed = 42;
constexpr std::uint32_t kVocabulary = 30522;
constexpr double kWords = 29520;            // even: every rank has its partner
constexpr std::uint32_t kFirstWord = 1000;  // after BERT's unused and special tokens, as in its vocabulary
constexpr SpecialTokens kBertSpecials{0, 100, 101, 102, 103};

}  // namespace

TokenRow synthetic_tokens(Split split) {
  const bool training = split == Split::train;
  const std::size_t sequences = training ? 16384 : 1024;
  const std::size_t count = sequences * static_cast<std::size_t>(kDefaultSequence - 2);
  SampleRandom random(kSeed, training ? 0 : 1);
  TokenRow row;
  row.tokens.reserve(count);
  while (row.tokens.size() < count) {
    const auto rank = static_cast<std::uint32_t>(std::pow(kWords, random.uniform())) - 1U;
    row.tokens.push_back(static_cast<TokenId>(kFirstWord + rank));
    row.tokens.push_back(static_cast<TokenId>(kFirstWord + (rank ^ 1U)));
  }
  row.specials = kBertSpecials;
  row.vocabulary_size = kVocabulary;
  row.name = "synthetic";
  return row;
}

}  // namespace ergometer::workload::language
