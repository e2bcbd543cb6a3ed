// Text to words as BERT's uncased "basic tokenizer" makes them: control characters dropped, CJK characters apart,
// accents stripped, lower case, split at white space and around punctuation. Used by word_piece.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ergometer::workload::language {

// Follows BertNormalizer (clean_text, handle_chinese_chars, strip_accents, lowercase) and BertPreTokenizer of Hugging
// Face's `tokenizers` 0.23. Bytes that are no UTF-8 count as U+FFFD, which that normaliser drops.
class WordSplitter {
 public:
  // `text` must outlive the splitter.
  explicit WordSplitter(std::string_view text) : text_(text) {}

  // Goes to the next word; false at the end.
  bool next();
  // Until the next call of next(): UTF-8, and its number of code points.
  std::string_view word() const { return word_; }
  std::size_t characters() const { return characters_; }
  // Bytes dropped so far that were no UTF-8.
  std::int64_t invalid_bytes() const { return invalid_bytes_; }

 private:
  void next_stretch();
  void normalise(std::string_view text);
  bool next_ascii();
  bool next_normalised();

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t ascii_end_ = 0;             // text_[at_, ascii_end_) is ASCII and ends between words
  std::vector<std::int32_t> normalised_;  // code points of the stretch in work that is not ASCII
  std::size_t normalised_at_ = 0;
  std::string word_;
  std::size_t characters_ = 0;
  std::int64_t invalid_bytes_ = 0;
};

}  // namespace ergometer::workload::language
