#include "language/text/word_splitter.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace ergometer::workload::language {
namespace {

enum class Kind : std::uint8_t { letter, space, punctuation, dropped };

bool is_ascii_punctuation(std::int32_t c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
}

// Vertical tab and form feed are white space in Unicode, yet dropped here: control characters go first.
constexpr bool is_ascii_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

struct Ascii {
  std::array<Kind, 128> kind{};
  std::array<char, 128> lower{};
};

const Ascii& ascii() {
  static const Ascii table = [] {
    Ascii made;
    for (std::size_t i = 0; i < 128; ++i) {
      const auto c = static_cast<char>(i);
      made.lower[i] = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      made.kind[i] = is_ascii_space(c)                                    ? Kind::space
                     : i < 32 || i == 127                                 ? Kind::dropped
                     : is_ascii_punctuation(static_cast<std::int32_t>(i)) ? Kind::punctuation
                                                                          : Kind::letter;
    }
    return made;
  }();
  return table;
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 128; }

// The property White_Space of Unicode, less the control characters.
bool is_space(std::int32_t c) {
  return c == 0x20 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_dropped(std::int32_t c) {
  if (c == 0 || c == 0xFFFD) return true;
  const utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO ||
         category == UTF8PROC_CATEGORY_CS || category == UTF8PROC_CATEGORY_CN;
}

// The blocks of ideographs that BERT sets apart. 2B920 (for 2B820) is the reference's own slip.
bool is_ideograph(std::int32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

bool is_punctuation(std::int32_t c) {
  if (c < 128) return is_ascii_punctuation(c);
  const utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

void append_utf8(std::string& text, std::int32_t c) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto length = utf8proc_encode_char(c, bytes.data());
  for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) text.push_back(static_cast<char>(bytes[i]));
}

// Drops what is no text and sets ideographs apart; UTF-8 to UTF-8.
std::string clean(std::string_view text, std::int64_t& invalid_bytes) {
  std::string cleaned;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t c = 0;
    const auto length = utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &c);
    if (length <= 0) {
      ++invalid_bytes;
      ++at;
      continue;
    }
    at += static_cast<std::size_t>(length);
    if (is_ideograph(c)) {
      cleaned.push_back(' ');
      append_utf8(cleaned, c);
      cleaned.push_back(' ');
    } else if (is_space(c) || (c < 128 && is_ascii_space(static_cast<char>(c)))) {
      cleaned.push_back(' ');
    } else if (!is_dropped(c)) {
      append_utf8(cleaned, c);
    }
  }
  return cleaned;
}

// Canonical decomposition (NFD) of valid UTF-8.
void decompose(const std::string& text, std::vector<std::int32_t>& to) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto size = static_cast<utf8proc_ssize_t>(text.size());
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
  to.resize(text.size());
  auto length = utf8proc_decompose(bytes, size, to.data(), static_cast<utf8proc_ssize_t>(to.size()), options);
  if (length > static_cast<utf8proc_ssize_t>(to.size())) {
    to.resize(static_cast<std::size_t>(length));
    length = utf8proc_decompose(bytes, size, to.data(), length, options);
  }
  to.resize(static_cast<std::size_t>(std::max<utf8proc_ssize_t>(0, length)));
}

}  // namespace

bool WordSplitter::next() {
  while (true) {
    if (normalised_at_ < normalised_.size()) {
      if (next_normalised()) return true;
    } else if (at_ < ascii_end_) {
      if (next_ascii()) return true;
    } else if (at_ < text_.size()) {
      next_stretch();
    } else {
      return false;
    }
  }
}

// Cuts at ASCII white space, which nothing reaches across, so that only words with other characters go the slow way.
void WordSplitter::next_stretch() {
  const auto begin = text_.begin() + static_cast<std::ptrdiff_t>(at_);
  const auto other = std::find_if_not(begin, text_.end(), is_ascii);
  auto end = other;
  if (other != text_.end()) {
    while (end != begin && !is_ascii_space(*(end - 1))) --end;
  }
  if (end != begin) {
    ascii_end_ = static_cast<std::size_t>(end - text_.begin());
    return;
  }
  end = std::find_if(other, text_.end(), is_ascii_space);
  normalise(text_.substr(at_, static_cast<std::size_t>(end - begin)));
  at_ = static_cast<std::size_t>(end - text_.begin());
  ascii_end_ = at_;
}

void WordSplitter::normalise(std::string_view text) {
  decompose(clean(text, invalid_bytes_), normalised_);
  normalised_at_ = 0;
  std::size_t kept = 0;
  for (const std::int32_t c : normalised_) {
    if (utf8proc_category(c) != UTF8PROC_CATEGORY_MN) normalised_[kept++] = utf8proc_tolower(c);
  }
  normalised_.resize(kept);
}

bool WordSplitter::next_ascii() {
  const Ascii& table = ascii();
  word_.clear();
  for (; at_ < ascii_end_; ++at_) {
    const auto c = static_cast<unsigned char>(text_[at_]);
    const Kind kind = table.kind[c];
    if (kind == Kind::letter) {
      word_.push_back(table.lower[c]);
    } else if (kind != Kind::dropped) {
      if (!word_.empty()) break;
      if (kind == Kind::punctuation) {
        word_.push_back(text_[at_++]);
        break;
      }
    }
  }
  characters_ = word_.size();
  return characters_ > 0;
}

bool WordSplitter::next_normalised() {
  word_.clear();
  characters_ = 0;
  for (; normalised_at_ < normalised_.size(); ++normalised_at_) {
    const std::int32_t c = normalised_[normalised_at_];
    const bool punctuation = is_punctuation(c);
    if (punctuation || is_space(c)) {
      if (characters_ > 0) break;
      if (!punctuation) continue;
    }
    append_utf8(word_, c);
    ++characters_;
    if (punctuation) {
      ++normalised_at_;
      break;
    }
  }
  return characters_ > 0;
}

}  // namespace ergometer::workload::language
