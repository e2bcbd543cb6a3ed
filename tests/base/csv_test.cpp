#include "base/csv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ergometer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Csv, QuotesWhatNeedsIt) {
  EXPECT_EQ(csv_line({"plain", "a,b", "say \"hi\"", "two\nlines", ""}),
            "plain,\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\n");
}

TEST(Csv, ReadsBackWhatItWrote) {
  const std::vector<std::string> fields{"a,b", "\"", "x\r\ny", "", "\xC3\xA4"};
  std::size_t pos = 0;
  const auto record = read_csv_record(csv_line(fields), pos);
  ASSERT_TRUE(record);
  EXPECT_EQ(*record, fields);
}

TEST(Csv, F99_EmptyFieldsKeepTheirColumns) {
  const std::string text =
      csv_line({"cpu_j", "gpu_j", "mode"}) + csv_line({"1", "", "node"}) + csv_line({"", "", "tree"});
  const auto table = parse_csv(text, "test");
  ASSERT_TRUE(table);
  EXPECT_THAT(table->rows, ElementsAre(ElementsAre("1", "", "node"), ElementsAre("", "", "tree")));
  EXPECT_EQ(table->column("mode"), 2U);
  EXPECT_EQ(table->column("none"), std::nullopt);
}

TEST(Csv, ByteOrderMarkBlankLinesAndWindowsLineEnds) {
  const auto table = parse_csv(
      "\xEF\xBB\xBF"
      "a,b\r\n\r\n1,2\r\n\n3,4",
      "test");
  ASSERT_TRUE(table);
  EXPECT_THAT(table->header, ElementsAre("a", "b"));
  EXPECT_THAT(table->rows, ElementsAre(ElementsAre("1", "2"), ElementsAre("3", "4")));
  EXPECT_THAT(table->lines, ElementsAre(3U, 5U));
}

TEST(Csv, FaultsNameTheirLine) {
  const auto uneven = parse_csv("a,b\n1,2\n3\n", "file.csv");
  ASSERT_FALSE(uneven);
  EXPECT_THAT(uneven.error().message, HasSubstr("file.csv:3"));
  const auto open = parse_csv("a,b\n1,\"2\n", "file.csv");
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().message, HasSubstr("file.csv:2"));
}

TEST(Csv, EmptyText) {
  const auto table = parse_csv("", "test");
  ASSERT_TRUE(table);
  EXPECT_TRUE(table->header.empty());
  EXPECT_TRUE(table->rows.empty());
}

}  // namespace
}  // namespace ergometer
