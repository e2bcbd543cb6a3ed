#include "language/text/vocabulary.hpp"

#include <gtest/gtest.h>

#include "fixtures.hpp"

namespace ergometer::workload::language {
namespace {

class VocabularyFile : public testing::Test {
 protected:
  // The message of the error from "vocab.txt" on.
  std::string fault(const std::string& text, std::size_t limit = 100) {
    folder_.write("vocab.txt", text);
    const auto vocabulary = Vocabulary::read((folder_ / "vocab.txt").string(), limit);
    if (vocabulary) return "no error";
    EXPECT_EQ(vocabulary.error().fault, Fault::data);
    EXPECT_NE(vocabulary.error().hint.find("vocab.txt of BERT base"), std::string::npos);
    return vocabulary.error().message.substr(vocabulary.error().message.find("vocab.txt"));
  }
  test::TempDir folder_;
};

TEST_F(VocabularyFile, NumbersAreLines) {
  const Vocabulary vocabulary = small_vocabulary();
  EXPECT_EQ(vocabulary.size(), 23U);
  EXPECT_EQ(vocabulary.begin_of_word("un"), TokenId{5});
  EXPECT_EQ(vocabulary.inside_word("aff"), TokenId{6});
  EXPECT_FALSE(vocabulary.begin_of_word("aff"));
  EXPECT_FALSE(vocabulary.inside_word("un"));
  EXPECT_EQ(vocabulary.specials().mask, 4);
  EXPECT_EQ(vocabulary.longest(), 6U);  // "[MASK]"
}

TEST_F(VocabularyFile, LineEndsDoNotMatterAndTokensDo) {
  std::string text = kSmallVocabulary;
  const std::string plain = small_vocabulary().fingerprint();
  std::string crlf;
  for (const char c : text) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  folder_.write("crlf.txt", crlf);
  const auto other = Vocabulary::read((folder_ / "crlf.txt").string(), 100);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->fingerprint(), plain);
  text.replace(text.find("world"), 5, "worle");
  folder_.write("changed.txt", text);
  EXPECT_NE(Vocabulary::read((folder_ / "changed.txt").string(), 100)->fingerprint(), plain);
}

TEST_F(VocabularyFile, ErrorsNameFileAndLine) {
  EXPECT_EQ(fault("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n"), "vocab.txt: no special token [MASK] in 5 lines");
  EXPECT_EQ(fault(""), "vocab.txt: no special token [PAD] in 0 lines");
  EXPECT_EQ(fault("[UNK]\n[PAD]\n[CLS]\n[SEP]\n[MASK]\n"), "vocab.txt:1: the first token is '[UNK]', not [PAD]");
  EXPECT_EQ(fault(std::string(kSmallVocabulary) + "un\n"), "vocab.txt:24: the token 'un' comes twice");
  EXPECT_EQ(fault("[PAD]\n\n[UNK]\n"), "vocab.txt:2: an empty line, not a token");
  EXPECT_EQ(fault(kSmallVocabulary, 22), "vocab.txt:23: more tokens than the 22 that the network has embeddings for");
  EXPECT_EQ(fault(kSmallVocabulary, 23), "no error");
  const auto absent = Vocabulary::read((folder_ / "absent").string(), 100);
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().message.find("No such file"), std::string::npos);
  EXPECT_FALSE(Vocabulary::read(folder_.path().string(), 100));
}

}  // namespace
}  // namespace ergometer::workload::language
