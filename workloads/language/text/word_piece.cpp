#include "language/text/word_piece.hpp"

#include <algorithm>

#include "language/text/word_splitter.hpp"

namespace ergometer::workload::language {
namespace {

constexpr std::size_t kLongestWord = 100;  // characters

bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace

WordPiece::WordPiece(const Vocabulary& vocabulary, std::vector<Literal> others)
    : vocabulary_(vocabulary), literals_(std::move(others)) {
  const SpecialTokens& specials = vocabulary.specials();
  for (const TokenId id : {specials.pad, specials.unknown, specials.begin, specials.end, specials.mask}) {
    literals_.emplace_back(vocabulary.token(id), id);
  }
}

std::int64_t WordPiece::encode(std::string_view text, std::vector<TokenId>& ids) const {
  std::int64_t invalid_bytes = 0;
  while (true) {
    std::size_t first = std::string_view::npos;
    const Literal* found = nullptr;
    for (const Literal& literal : literals_) {
      const std::size_t at = text.substr(0, first).find(literal.first);
      if (at != std::string_view::npos) {
        first = at;
        found = &literal;
      }
    }
    invalid_bytes += encode_words(text.substr(0, first), ids);
    if (!found) return invalid_bytes;
    ids.push_back(found->second);
    text.remove_prefix(first + found->first.size());
  }
}

std::int64_t WordPiece::encode_words(std::string_view text, std::vector<TokenId>& ids) const {
  WordSplitter words(text);
  while (words.next()) {
    if (words.characters() > kLongestWord) {
      ids.push_back(vocabulary_.specials().unknown);
    } else {
      encode_word(words.word(), ids);
    }
  }
  return words.invalid_bytes();
}

void WordPiece::encode_word(std::string_view word, std::vector<TokenId>& ids) const {
  const std::size_t before = ids.size();
  for (std::size_t begin = 0; begin < word.size();) {
    std::size_t end = std::min(word.size(), begin + vocabulary_.longest());
    std::optional<TokenId> id;
    for (; end > begin; --end) {
      if (end < word.size() && is_inside_character(word[end])) continue;
      const std::string_view piece = word.substr(begin, end - begin);
      id = begin == 0 ? vocabulary_.begin_of_word(piece) : vocabulary_.inside_word(piece);
      if (id) break;
    }
    if (!id) {
      ids.resize(before);
      ids.push_back(vocabulary_.specials().unknown);
      return;
    }
    ids.push_back(*id);
    begin = end;
  }
}

}  // namespace ergometer::workload::language
