#include "language/data/corpus.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "fixtures.hpp"
#include "language/data/files.hpp"
#include "language/workloads.hpp"

namespace ergometer::workload::language {
namespace {

class CorpusFile : public testing::Test {
 protected:
  Result<Corpus> read(const std::string& text, bool strict = false, int threads = 1) {
    folder_.write("text", text);
    return read_corpus((folder_ / "text").string(), WordPiece(vocabulary_), strict, threads);
  }
  Vocabulary vocabulary_ = small_vocabulary();
  test::TempDir folder_;
};

TEST_F(CorpusFile, LinesFollowEachOther) {
  const auto corpus = read(" \n = hello = \r\n\nworld , un");
  ASSERT_TRUE(corpus);
  EXPECT_EQ(corpus->tokens, (std::vector<TokenId>{15, 19, 15, 20, 11, 5}));
  EXPECT_EQ(corpus->invalid_bytes, 0);
  EXPECT_TRUE(read("")->tokens.empty());
}

TEST_F(CorpusFile, ThreadsAndBlocksDoNotMatter) {
  std::string text;  // of more than two blocks of 4 MiB
  std::vector<TokenId> expected;
  for (int i = 0; text.size() < (9U << 20U); ++i) {
    text += "hello , world . un" + std::string(static_cast<std::size_t>(i % 50), ' ') + "\n";
    expected.insert(expected.end(), {19, 11, 20, 12, 5});
  }
  text += "un\xFF\n";
  expected.push_back(5);
  const std::int64_t lines = std::count(text.begin(), text.end(), '\n');
  for (const int threads : {1, 2, 5}) {
    const auto corpus = read(text, false, threads);
    ASSERT_TRUE(corpus);
    EXPECT_TRUE(corpus->tokens == expected) << threads;
    EXPECT_EQ(corpus->first_invalid, fmt::format("{}:{}", (folder_ / "text").string(), lines));
  }
}

TEST_F(CorpusFile, ALineMayBeLongerThanABlock) {
  std::string text;
  while (text.size() < (5U << 20U)) text += "hello ";
  const auto corpus = read("un\n" + text + "\nun\n");
  ASSERT_TRUE(corpus);
  EXPECT_EQ(corpus->tokens.size(), text.size() / 6 + 2);
  EXPECT_EQ(corpus->tokens.back(), 5);
}

TEST_F(CorpusFile, InvalidBytesAreCountedOrStop) {
  const std::string text = "hello\nwo\xFFrld\nun\xC3\n";
  const auto corpus = read(text);
  ASSERT_TRUE(corpus);
  EXPECT_EQ(corpus->tokens, (std::vector<TokenId>{19, 20, 5}));
  EXPECT_EQ(corpus->invalid_bytes, 2);
  EXPECT_EQ(corpus->first_invalid, (folder_ / "text").string() + ":2");
  const auto stopped = read(text, true);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message, (folder_ / "text").string() + ":2: a byte that is no UTF-8");
  EXPECT_FALSE(read_corpus(folder_.path().string(), WordPiece(vocabulary_), false, 1));
  EXPECT_FALSE(read_corpus((folder_ / "absent").string(), WordPiece(vocabulary_), false, 1));
}

class TextFolder : public testing::Test {
 protected:
  std::string name_of(Split split) {
    const auto files = find_files(folder_.path().string(), split);
    return files ? std::filesystem::path(files->text).filename().string() : files.error().message;
  }
  Result<std::unique_ptr<DataSet>> open(Split split, bool strict = false) {
    DataOptions options;
    options.folder = folder_.path().string();
    options.sequence = 8;
    options.strict = strict;
    options.state = state_;
    return kBertBase.open_data(options, split);
  }
  std::string state_;
  test::TempDir folder_;
};

TEST_F(TextFolder, NamesInOrderOfPreference) {
  folder_.write("vocab.txt", "");
  folder_.write("train.txt", "");
  folder_.write("valid.txt", "");
  folder_.write("test.txt", "");
  EXPECT_EQ(name_of(Split::train), "train.txt");
  EXPECT_EQ(name_of(Split::validation), "valid.txt");
  folder_.write("wiki.train.tokens", "");
  EXPECT_EQ(name_of(Split::train), "wiki.train.tokens");
  folder_.write("wiki.train.raw", "");
  EXPECT_EQ(name_of(Split::train), "wiki.train.raw");
  EXPECT_TRUE(find_files(folder_.path().string(), Split::train)->notes.empty());
}

TEST_F(TextFolder, TheNextTextTakesTheMissingOnesPlaceAndIsNoted) {
  folder_.write("vocab.txt", "");
  folder_.write("valid.txt", "");
  folder_.write("test.txt", "");
  EXPECT_EQ(name_of(Split::train), "valid.txt");
  EXPECT_EQ(name_of(Split::validation), "test.txt");
  const auto files = find_files(folder_.path().string(), Split::train);
  ASSERT_EQ(files->notes.size(), 1U);
  EXPECT_EQ(files->notes[0], folder_.path().string() + ": no training text: trains with valid.txt");
}

TEST_F(TextFolder, ErrorsNameWhatIsMissing) {
  EXPECT_EQ(name_of(Split::train), folder_.path().string() + ": no training text");
  folder_.write("train.txt", "");
  folder_.write("valid.txt.xz", "");
  EXPECT_EQ(name_of(Split::validation), folder_.path().string() + ": no validation text");
  EXPECT_EQ(find_files(folder_.path().string(), Split::validation).error().hint,
            "unpack it: xz -dk " + (folder_ / "valid.txt.xz").string());
  EXPECT_EQ(name_of(Split::train), folder_.path().string() + ": no vocabulary (vocab.txt or *-vocab.txt)");
  folder_.write("bert-vocab.txt.xz", "");
  EXPECT_EQ(find_files(folder_.path().string(), Split::train).error().hint,
            "unpack it: xz -dk " + (folder_ / "bert-vocab.txt.xz").string());
  folder_.write("bert-vocab.txt", "");
  EXPECT_EQ(name_of(Split::train), "train.txt");
  folder_.write("a-vocab.txt", "");
  EXPECT_EQ(name_of(Split::train), folder_.path().string() + ": several vocabularies: a-vocab.txt, bert-vocab.txt");
  folder_.write("vocab.txt", "");
  EXPECT_EQ(name_of(Split::train), "train.txt");
  const auto absent = find_files((folder_ / "absent").string(), Split::train);
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().hint.find("synthetic"), std::string::npos);
}

TEST_F(TextFolder, WhatIsLeftOutIsNoted) {
  folder_.write("vocab.txt", kSmallVocabulary);
  folder_.write("train.txt",
                "hello world , <unk> . unaf\xFF"
                "fable\nun un\n");
  folder_.write("valid.txt", "hello world\n");
  const auto train = open(Split::train);
  ASSERT_TRUE(train) << train.error().message;
  EXPECT_EQ((*train)->size(), 1);
  const std::string file = (folder_ / "train.txt").string();
  EXPECT_EQ((*train)->notes(),
            (std::vector<std::string>{file + ": 1 bytes that are no UTF-8 are left out, the first at " + file + ":1",
                                      file + ": the last 4 of 10 tokens fill no sequence of 8"}));
  EXPECT_FALSE(open(Split::train, true));
  const auto valid = open(Split::validation);
  ASSERT_FALSE(valid);
  EXPECT_EQ(valid.error().message, (folder_ / "valid.txt").string() + ": 2 tokens do not fill one sequence of 8");

  state_ = (*train)->state();
  EXPECT_TRUE(open(Split::train));
  folder_.write("vocab.txt", std::string(kSmallVocabulary) + "more\n");
  const auto other = open(Split::train);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("vocab.txt: another vocabulary (24 tokens, "), std::string::npos);
}

TEST_F(TextFolder, ReadsRealText) {
  if (const std::string why = samples_absent(); !why.empty()) GTEST_SKIP() << why;
  unpack("vocab/bert-base-uncased-vocab.txt", folder_ / "bert-base-uncased-vocab.txt");
  unpack("wikitext-2/valid.txt", folder_ / "valid.txt");
  unpack("wikitext-2/test.txt", folder_ / "test.txt");
  const auto train = open(Split::train, true);
  const auto valid = open(Split::validation, true);
  ASSERT_TRUE(train && valid) << train.error().message;
  // At least one token for each of the 213,886 and 241,211 words.
  EXPECT_GT((*train)->size() * 6, 213'886);
  EXPECT_GT((*valid)->size() * 6, 241'211);
  EXPECT_LT((*train)->size() * 6, 300'000);
  const auto batch = (*train)->load({0}, 1);
  ASSERT_TRUE(batch);
  // " = Homarus gammarus = "
  const auto ids = batch->tensors[0];
  const auto labels = batch->tensors[1];
  EXPECT_EQ(ids[0][0].item<int>(), 101);
  EXPECT_EQ(torch::where(labels.ne(-100), labels, ids)[0][1].item<int>(), 1027);
}

}  // namespace
}  // namespace ergometer::workload::language
