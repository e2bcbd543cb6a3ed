// Text to token numbers as BERT's uncased WordPiece tokeniser gives them, without [CLS] and [SEP] around. Used by the
// data sets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "language/text/vocabulary.hpp"

namespace ergometer::workload::language {

// Greedy, longest piece first (Wu et al. 2016, arXiv:1609.08144; Devlin et al. 2018, arXiv:1810.04805). A word that has
// no split, or more than 100 characters, is one [UNK]. The literals [PAD], [UNK], [CLS], [SEP] and [MASK] in a text are
// those tokens, as in Hugging Face's `tokenizers` 0.23.
class WordPiece {
 public:
  using Literal = std::pair<std::string, TokenId>;

  // `vocabulary` must outlive it. `others`: further literals that stand for one token.
  explicit WordPiece(const Vocabulary& vocabulary, std::vector<Literal> others = {});

  // Appends the tokens of `text` to `ids`; returns the number of bytes left out because they are no UTF-8. May be
  // called from several threads at once.
  std::int64_t encode(std::string_view text, std::vector<TokenId>& ids) const;

 private:
  std::int64_t encode_words(std::string_view text, std::vector<TokenId>& ids) const;
  void encode_word(std::string_view word, std::vector<TokenId>& ids) const;

  const Vocabulary& vocabulary_;
  std::vector<Literal> literals_;
};

}  // namespace ergometer::workload::language
