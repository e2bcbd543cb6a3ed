// A text file as one long row of tokens. Used by the data set of texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "language/text/word_piece.hpp"

namespace ergometer::workload::language {

struct Corpus {
  std::vector<TokenId> tokens;
  std::int64_t invalid_bytes = 0;  // left out, being no UTF-8
  std::string first_invalid;       // FILE:LINE of the first of them
};

// All lines in order, on up to `threads` threads; the result does not depend on their number. Headings and empty lines
// are text like any other. `strict`: bytes that are no UTF-8 are an error with file and line.
[[nodiscard]] Result<Corpus> read_corpus(const std::string& path, const WordPiece& tokeniser, bool strict, int threads);

}  // namespace ergometer::workload::language
