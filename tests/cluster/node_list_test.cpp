// Slurm's lists of nodes and counts.
#include "cluster/node_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ergometer::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NodeList, RangesKeepTheirZerosAndTheirOrder) {
  EXPECT_THAT(expand_node_list("n[1-3,07-09],a").value(), ElementsAre("n1", "n2", "n3", "n07", "n08", "n09", "a"));
  EXPECT_THAT(expand_node_list("gpu008").value(), ElementsAre("gpu008"));
  EXPECT_THAT(expand_node_list("n[098-101]").value(), ElementsAre("n098", "n099", "n100", "n101"));
}

TEST(NodeList, SeveralBracketsMultiply) {
  EXPECT_THAT(expand_node_list("r[0-1]n[1,3]x").value(), ElementsAre("r0n1x", "r0n3x", "r1n1x", "r1n3x"));
}

TEST(NodeList, WhatIsNoListIsNamed) {
  for (const char* list : {"n[1-3", "n1-3]", "n[[1]]", "n[3-1]", "n[a-b]", "n[]", "a,,b", "", "n[-2]", "n[0-999999]"}) {
    const auto nodes = expand_node_list(list);
    ASSERT_FALSE(nodes) << list;
    EXPECT_EQ(nodes.error().code, ErrorCode::invalid_argument) << list;
    EXPECT_THAT(nodes.error().message, HasSubstr(list));
  }
}

TEST(NodeList, ManyBracketsDoNotEatTheMemory) {
  EXPECT_FALSE(expand_node_list("a[0-9999]b[0-9999]c[0-9999]"));
  EXPECT_EQ(expand_node_list("n[1-100000]")->size(), 100000U);
}

TEST(Counts, ShortFormsRepeat) {
  EXPECT_THAT(expand_counts("2(x3),1").value(), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(expand_counts("72").value(), ElementsAre(72));
  for (const char* list : {"", "2(x", "2(x0)", "x3", "2(x3)1", "-1", "2(x999999999)"})
    EXPECT_FALSE(expand_counts(list)) << list;
}

}  // namespace
}  // namespace ergometer::test
