#include "language/data/make_data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "fixtures.hpp"
#include "language/data/corpus.hpp"
#include "language/workloads.hpp"

namespace ergometer::workload::language {
namespace {

class MadeText : public testing::Test {
 protected:
  std::string make(const std::string& name, std::int64_t count, std::uint64_t seed = 42) {
    MakeDataOptions options;
    options.folder = (folder_ / name).string();
    options.count = count;
    options.seed = seed;
    const auto made = kBertBase.make_data(options, {out_, out_});
    EXPECT_TRUE(made) << made.error().message;
    return options.folder;
  }
  test::TempDir folder_;
  std::ostringstream out_;
};

TEST_F(MadeText, SameBytesForASeedAndMoreGoOnWhereFewerEnd) {
  make("a", 20);
  make("b", 20);
  make("c", 10);
  make("d", 20, 43);
  EXPECT_EQ(folder_.read("a/wiki.train.raw"), folder_.read("b/wiki.train.raw"));
  EXPECT_EQ(folder_.read("a/wiki.valid.raw"), folder_.read("b/wiki.valid.raw"));
  EXPECT_EQ(folder_.read("a/vocab.txt"), folder_.read("b/vocab.txt"));
  EXPECT_EQ(folder_.read("a/wiki.train.raw").rfind(folder_.read("c/wiki.train.raw"), 0), 0U);
  EXPECT_NE(folder_.read("a/wiki.train.raw"), folder_.read("d/wiki.train.raw"));
  EXPECT_NE(folder_.read("a/wiki.train.raw"), folder_.read("a/wiki.valid.raw"));
}

TEST_F(MadeText, HasTheFormOfWikiText) {
  make("a", 20);
  std::istringstream lines(folder_.read("a/wiki.train.raw"));
  std::string line;
  int articles = 0;
  int sections = 0;
  int paragraphs = 0;
  while (std::getline(lines, line)) {
    ASSERT_FALSE(line.empty());
    EXPECT_EQ(line.front(), ' ');
    EXPECT_EQ(line.back(), ' ');
    if (line.rfind(" = = ", 0) == 0) {
      ++sections;
    } else if (line.rfind(" = ", 0) == 0) {
      ++articles;
    } else if (line != " ") {
      ++paragraphs;
    }
  }
  EXPECT_EQ(articles, 4);
  EXPECT_EQ(sections, 8);
  EXPECT_EQ(paragraphs, 20);
}

TEST_F(MadeText, IsReadWithoutUnknownTokensAndCanBeLearnt) {
  const std::string folder = make("a", 60);
  DataOptions options;
  options.folder = folder;
  options.sequence = 64;
  options.strict = true;
  for (const Split split : {Split::train, Split::validation}) {
    const auto set = kDistilbert.open_data(options, split);
    ASSERT_TRUE(set) << set.error().message;
    EXPECT_GT((*set)->size(), 10);
  }
  const auto vocabulary = Vocabulary::read(folder + "/vocab.txt", 30522);
  ASSERT_TRUE(vocabulary) << vocabulary.error().message;
  const WordPiece tokeniser(*vocabulary);
  const auto corpus = read_corpus(folder + "/wiki.train.raw", tokeniser, true, 2);
  ASSERT_TRUE(corpus);
  const auto& tokens = corpus->tokens;
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), vocabulary->specials().unknown), 0);
  // Some tokens are pieces, most are whole words.
  const auto pieces = std::count_if(tokens.begin(), tokens.end(),
                                    [&](TokenId id) { return vocabulary->token(id).rfind("##", 0) == 0; });
  EXPECT_GT(pieces, static_cast<std::ptrdiff_t>(tokens.size() / 20));
  EXPECT_LT(pieces, static_cast<std::ptrdiff_t>(tokens.size() / 2));
}

TEST_F(MadeText, AFolderThatCannotBeIsAnError) {
  folder_.write("file", "x");
  MakeDataOptions options;
  options.folder = (folder_ / "file").string();
  options.count = 5;
  const auto made = make_data(options, {out_, out_});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message.rfind(options.folder, 0), 0U) << made.error().message;
}

}  // namespace
}  // namespace ergometer::workload::language
