#include "language/text/word_piece.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fixtures.hpp"
#include "language/text/word_splitter.hpp"

namespace ergometer::workload::language {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  WordSplitter splitter(text);
  while (splitter.next()) words.emplace_back(splitter.word());
  return words;
}

std::vector<std::string> tokens_of(const Vocabulary& vocabulary, const WordPiece& tokeniser, std::string_view text) {
  std::vector<TokenId> ids;
  tokeniser.encode(text, ids);
  std::vector<std::string> tokens;
  for (const TokenId id : ids) tokens.push_back(vocabulary.token(id));
  return tokens;
}

using Words = std::vector<std::string>;

TEST(WordSplitter, WordsPunctuationAndCase) {
  EXPECT_EQ(words_of(" Hello,  WORLD's\tend. "), (Words{"hello", ",", "world", "'", "s", "end", "."}));
  EXPECT_EQ(words_of(""), Words{});
  EXPECT_EQ(words_of(" \n\t"), Words{});
  EXPECT_EQ(words_of("$1+2"), (Words{"$", "1", "+", "2"}));
}

TEST(WordSplitter, AccentsIdeographsAndOtherSpaces) {
  EXPECT_EQ(words_of("Ångström na\xC3\xAFve"), (Words{"angstrom", "naive"}));
  EXPECT_EQ(words_of("a中文b"), (Words{"a", "中", "文", "b"}));
  EXPECT_EQ(words_of("a\u00A0b\u2003c\u3000d"), (Words{"a", "b", "c", "d"}));
  EXPECT_EQ(words_of("İstanbul\u2026x"), (Words{"istanbul", "\u2026", "x"}));
}

TEST(WordSplitter, ControlCharactersJoin) {
  EXPECT_EQ(words_of(std::string_view("a\0b\x0B"
                                      "c\x7F",
                                      6)),
            (Words{"abc"}));
  EXPECT_EQ(words_of("zero\u200Bwidth so\u00ADft"), (Words{"zerowidth", "soft"}));
}

TEST(WordSplitter, BytesThatAreNoUtf8AreCountedAndLeftOut) {
  WordSplitter splitter(
      "a\xFF\xFE"
      "b \xC3 c");
  ASSERT_TRUE(splitter.next());
  EXPECT_EQ(splitter.word(), "ab");
  ASSERT_TRUE(splitter.next());
  EXPECT_EQ(splitter.word(), "c");
  EXPECT_FALSE(splitter.next());
  EXPECT_EQ(splitter.invalid_bytes(), 3);
}

TEST(WordPiece, LongestPieceFirstElseUnknown) {
  const Vocabulary vocabulary = small_vocabulary();
  const WordPiece tokeniser(vocabulary);
  EXPECT_EQ(tokens_of(vocabulary, tokeniser, "unaffable abcb"),
            (Words{"un", "##aff", "##able", "a", "##b", "##c", "##b"}));
  // No split of the whole word: one unknown token, whatever its beginning.
  EXPECT_EQ(tokens_of(vocabulary, tokeniser, "unx a"), (Words{"[UNK]", "a"}));
  EXPECT_EQ(tokens_of(vocabulary, tokeniser, "hello[MASK]world [mask]"),
            (Words{"hello", "[MASK]", "world", "[UNK]", "[UNK]", "[UNK]"}));
}

TEST(WordPiece, WordsOfMoreThanAHundredCharactersAreUnknown) {
  const Vocabulary vocabulary = small_vocabulary();
  const WordPiece tokeniser(vocabulary);
  EXPECT_EQ(tokens_of(vocabulary, tokeniser, "a" + std::string(99, 'b')).size(), 100U);
  EXPECT_EQ(tokens_of(vocabulary, tokeniser, "a" + std::string(100, 'b')), (Words{"[UNK]"}));
}

TEST(FaultCases, F139WikiTextSpecialTokens) {
  const Vocabulary vocabulary = small_vocabulary();
  const WordPiece tokeniser(vocabulary, {{"<unk>", vocabulary.specials().unknown}});
  // "<unk>" is the one unknown token that unseen words have as well.
  EXPECT_EQ(tokens_of(vocabulary, tokeniser, " M @-@ 82 <unk> . "),
            (Words{"m", "@", "-", "@", "8", "##2", "[UNK]", "."}));
  EXPECT_EQ(tokens_of(vocabulary, tokeniser, "unseen"), (Words{"[UNK]"}));
}

class ReferenceTokens : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = samples_absent(); !why.empty()) GTEST_SKIP() << why;
    unpack("vocab/bert-base-uncased-vocab.txt", folder_ / "vocab.txt");
  }
  // Compares all lines of a file of {"text", "ids"}; returns their number.
  int compare(const std::string& name, bool with_ends) {
    const auto vocabulary = Vocabulary::read((folder_ / "vocab.txt").string(), 30522);
    EXPECT_TRUE(vocabulary);
    EXPECT_EQ(vocabulary->size(), 30522U);
    const WordPiece tokeniser(*vocabulary);
    std::ifstream file(test::shared_dir() / "data" / "vocab" / name);
    std::string line;
    int count = 0;
    while (std::getline(file, line)) {
      const auto json = nlohmann::json::parse(line);
      std::vector<TokenId> ids;
      if (with_ends) ids.push_back(vocabulary->specials().begin);
      EXPECT_EQ(tokeniser.encode(json["text"].get<std::string>(), ids), 0);
      if (with_ends) ids.push_back(vocabulary->specials().end);
      EXPECT_EQ(ids, json["ids"].get<std::vector<TokenId>>()) << line;
      ++count;
    }
    return count;
  }
  test::TempDir folder_;
};

TEST_F(ReferenceTokens, OfHuggingFace) { EXPECT_EQ(compare("ref-hf-tokenizers.jsonl", true), 207); }
TEST_F(ReferenceTokens, OfLlamaCpp) { EXPECT_EQ(compare("ref-llamacpp-bert-bge.jsonl", false), 43); }

}  // namespace
}  // namespace ergometer::workload::language
