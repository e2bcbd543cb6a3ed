#include "base/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ergometer {
namespace {

using ::testing::ElementsAre;

TEST(Text, Trim) {
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
}

TEST(Text, EditDistance) {
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("interval", "intervall"), 1U);
  EXPECT_EQ(edit_distance("rnu", "run"), 1U) << "two neighbours swapped are one slip";
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Text, NearestName) {
  const std::vector<std::string> known{"run", "show", "sensors"};
  EXPECT_EQ(nearest_name("rnu", known), "run");
  EXPECT_EQ(nearest_name("SENSOR", known), "sensors");
  EXPECT_EQ(nearest_name("completely-else", known), "");
  EXPECT_EQ(nearest_name("run", {}), "");
}

TEST(Text, FileNames) {
  EXPECT_EQ(file_name_of("a/b c<d>"), "a_b_c_d_");
  EXPECT_EQ(file_name_of("node-01.local"), "node-01.local");
  for (const char* name : {"", ".", ".."}) {
    const auto safe = file_name_of(name);
    EXPECT_NE(safe, name);
    EXPECT_FALSE(safe.empty());
  }
}

}  // namespace
}  // namespace ergometer
