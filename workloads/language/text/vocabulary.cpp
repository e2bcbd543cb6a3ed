#include "language/text/vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <system_error>
#include <unordered_set>

namespace ergometer::workload::language {
namespace {

constexpr std::string_view kInside = "##";
constexpr const char* kRemedy = "take the vocab.txt of BERT base, uncased, or one made with 'data make'";

}  // namespace

Result<Vocabulary> Vocabulary::read(const std::string& path, std::size_t limit) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Fault::data, fmt::format("{}: {}", path, std::generic_category().message(errno)), kRemedy};
  Vocabulary vocabulary;
  std::string line;
  while (std::getline(file, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (auto added = vocabulary.add(line, path, limit); !added) return added.error();
  }
  if (file.bad()) return Error{Fault::data, fmt::format("{}: cannot be read as a file", path), kRemedy};
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < vocabulary.tokens_.size(); ++i) {
    if (!seen.insert(vocabulary.tokens_[i]).second) {
      return Error{Fault::data, fmt::format("{}:{}: the token '{}' comes twice", path, i + 1, vocabulary.tokens_[i]),
                   kRemedy};
    }
  }
  vocabulary.index_tokens();
  if (auto found = vocabulary.find_specials(path); !found) return found.error();
  return vocabulary;
}

Result<Done> Vocabulary::add(std::string_view token, const std::string& path, std::size_t limit) {
  static_assert(std::numeric_limits<TokenId>::max() >= 30521);
  const std::size_t line = tokens_.size() + 1;
  if (token.empty()) return Error{Fault::data, fmt::format("{}:{}: an empty line, not a token", path, line), kRemedy};
  if (line > limit) {
    return Error{Fault::data,
                 fmt::format("{}:{}: more tokens than the {} that the network has embeddings for", path, line, limit),
                 kRemedy};
  }
  tokens_.emplace_back(token);
  return Done{};
}

void Vocabulary::index_tokens() {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    std::string_view text = tokens_[i];
    // "##" alone is no piece; a word never begins with it, for '#' is punctuation.
    const bool inside = text.size() > kInside.size() && text.substr(0, kInside.size()) == kInside;
    if (inside) text.remove_prefix(kInside.size());
    longest_ = std::max(longest_, text.size());
    (inside ? insides_ : begins_).emplace(text, static_cast<TokenId>(i));
  }
}

Result<Done> Vocabulary::find_specials(const std::string& path) {
  struct Wanted {
    const char* name;
    TokenId* id;
  };
  for (const Wanted& wanted :
       {Wanted{"[PAD]", &specials_.pad}, Wanted{"[UNK]", &specials_.unknown}, Wanted{"[CLS]", &specials_.begin},
        Wanted{"[SEP]", &specials_.end}, Wanted{"[MASK]", &specials_.mask}}) {
    const auto id = begin_of_word(wanted.name);
    if (!id) {
      return Error{Fault::data, fmt::format("{}: no special token {} in {} lines", path, wanted.name, size()), kRemedy};
    }
    *wanted.id = *id;
  }
  if (specials_.pad != 0) {
    // The networks' word embeddings keep row 0 for padding.
    return Error{Fault::data, fmt::format("{}:1: the first token is '{}', not [PAD]", path, tokens_[0]), kRemedy};
  }
  return Done{};
}

std::string Vocabulary::fingerprint() const {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  const auto mix = [&hash](char letter) { hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3ULL; };
  for (const std::string& token : tokens_) {
    for (const char letter : token) mix(letter);
    mix('\n');
  }
  return fmt::format("{} tokens, {:016x}", size(), hash);
}

}  // namespace ergometer::workload::language
