// A WordPiece vocabulary: one token a line, its number the line's; pieces inside a word begin with "##". Used by the
// tokeniser and the data sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/result.hpp"

namespace ergometer::workload::language {

// Two bytes hold BERT's 30,522 tokens, and halve the memory of a long text.
using TokenId = std::uint16_t;

struct SpecialTokens {
  TokenId pad = 0;
  TokenId unknown = 0;
  TokenId begin = 0;  // [CLS]
  TokenId end = 0;    // [SEP]
  TokenId mask = 0;

  bool contains(TokenId id) const { return id == pad || id == unknown || id == begin || id == end || id == mask; }
};

class Vocabulary {
 public:
  // Errors: a file that cannot be read, more tokens than `limit` (the network's embeddings), an empty or repeated token
  // (FILE:LINE), no special token [UNK], [CLS], [SEP] or [MASK], or another first token than [PAD]. CRLF is understood.
  [[nodiscard]] static Result<Vocabulary> read(const std::string& path, std::size_t limit);

  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  // The maps' keys point into tokens_.
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  std::size_t size() const { return tokens_.size(); }
  const std::string& token(TokenId id) const { return tokens_[id]; }
  const SpecialTokens& specials() const { return specials_; }
  // The token that begins a word; and the piece inside a word, given without its "##".
  std::optional<TokenId> begin_of_word(std::string_view text) const { return find(begins_, text); }
  std::optional<TokenId> inside_word(std::string_view text) const { return find(insides_, text); }
  // Bytes of the longest token, without "##".
  std::size_t longest() const { return longest_; }
  // "30522 tokens, 0123456789abcdef": differs where any token does (FNV-1a hash of all).
  std::string fingerprint() const;

 private:
  using Index = std::unordered_map<std::string_view, TokenId>;

  Vocabulary() = default;
  static std::optional<TokenId> find(const Index& index, std::string_view text) {
    const auto found = index.find(text);
    if (found == index.end()) return std::nullopt;
    return found->second;
  }
  Result<Done> add(std::string_view token, const std::string& path, std::size_t limit);
  void index_tokens();
  Result<Done> find_specials(const std::string& path);

  std::vector<std::string> tokens_;
  Index begins_;
  Index insides_;
  SpecialTokens specials_;
  std::size_t longest_ = 0;
};

}  // namespace ergometer::workload::language
