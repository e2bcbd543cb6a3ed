// Designs and plans: which cells, in which order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "study/design.hpp"
#include "study/plan.hpp"
#include "study/study_file.hpp"

namespace ergometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Levels = std::vector<std::size_t>;

StudyFile file_of(const std::string& rest, const std::string& factors = "a = [1, 2]\nb = [1, 2, 3]\n") {
  auto file = parse_study_file("name = \"t\"\ncommand = \"echo {a} {b}\"\n[factors]\n" + factors + rest, "t.toml");
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  return file ? *file : StudyFile{};
}

std::vector<Levels> levels_of(const Result<std::vector<StudyCell>>& cells) {
  std::vector<Levels> all;
  EXPECT_TRUE(cells) << (cells ? "" : cells.error().message);
  if (cells)
    for (const auto& cell : *cells) all.push_back(cell.levels);
  return all;
}

TEST(Design, FullHasAllCombinations) {
  EXPECT_THAT(levels_of(cells_of(file_of(""), "t")),
              ElementsAre(Levels{0, 0}, Levels{0, 1}, Levels{0, 2}, Levels{1, 0}, Levels{1, 1}, Levels{1, 2}));
}

TEST(Design, OneAtATimeVariesEachFactorAroundTheBase) {
  const auto file = file_of("[design]\nkind = \"one-at-a-time\"\nbase = { a = 2, b = 1 }\n");
  EXPECT_THAT(levels_of(cells_of(file, "t")), ElementsAre(Levels{1, 0}, Levels{0, 0}, Levels{1, 1}, Levels{1, 2}));
}

TEST(Design, AHalfFractionIsBalancedAndMixesNoMainEffects) {
  const auto file = file_of("[design]\nkind = \"fraction\"\nfraction = 2\n", "a = [1, 2]\nb = [1, 2]\nranks = [1, 2]\n");
  const auto cells = levels_of(cells_of(file, "t"));
  ASSERT_EQ(cells.size(), 4u);
  // Every pair of levels of every two factors occurs once.
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = i + 1; j < 3; ++j) {
      std::set<std::pair<std::size_t, std::size_t>> pairs;
      for (const auto& cell : cells) pairs.insert({cell[i], cell[j]});
      EXPECT_EQ(pairs.size(), 4u);
    }
}

TEST(Design, AFractionThatTheLevelsDoNotAllowIsAnError) {
  const auto cells = cells_of(file_of("[design]\nkind = \"fraction\"\nfraction = 2\n"), "t.toml");
  ASSERT_FALSE(cells);
  EXPECT_THAT(cells.error().message, HasSubstr("t.toml:6: a fraction of 1/2 needs two factors"));
}

TEST(Design, ListedCellsAndExclusions) {
  const auto listed = file_of("[design]\nkind = \"cells\"\ncells = [{ a = 1, b = 3 }, { b = 1, a = 2 }, { a = 1, b = 3 }]\n");
  EXPECT_THAT(levels_of(cells_of(listed, "t")), ElementsAre(Levels{0, 2}, Levels{1, 0}));
  const auto excluded = file_of("[design]\nexclude = [{ a = 1, b = [2, 3] }, { a = 2 }]\n");
  EXPECT_THAT(levels_of(cells_of(excluded, "t")), ElementsAre(Levels{0, 0}));
}

TEST(Design, ExclusionsThatLeaveNothingAreAnErrorWithALine) {
  const auto cells = cells_of(file_of("[design]\nexclude = [{ a = 1 }, { a = 2 }]\n"), "t.toml");
  ASSERT_FALSE(cells);
  EXPECT_THAT(cells.error().message, HasSubstr("t.toml:6: the exclusions leave no cell"));
  EXPECT_THAT(cells.error().hint, HasSubstr("exclude"));
}

TEST(Design, TooManyCellsAreRefused) {
  std::string levels;
  for (int i = 0; i < 1000; ++i) levels += std::to_string(i) + ",";
  const auto file = file_of("", "a = [" + levels + "]\nb = [" + levels + "]\nranks = [1, 2]\n");
  const auto cells = cells_of(file, "t.toml");
  ASSERT_FALSE(cells);
  EXPECT_THAT(cells.error().hint, HasSubstr("one-at-a-time"));
}

TEST(Plan, EachBlockHoldsEachCellOnceInAnOrderOfItsOwn) {
  const auto plan = make_plan(file_of("[runs]\nrepetitions = 4\nseed = 7\n"), {}, 1, "t");
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->seed, 7u);
  ASSERT_EQ(plan->runs.size(), 24u);
  std::set<std::vector<std::size_t>> orders;
  for (int block = 0; block < 4; ++block) {
    std::vector<std::size_t> order;
    for (int i = 0; i < 6; ++i) {
      const auto& run = plan->runs[static_cast<std::size_t>(6 * block + i)];
      EXPECT_EQ(run.repetition, block);
      order.push_back(run.cell);
    }
    orders.insert(order);
    EXPECT_EQ(std::set<std::size_t>(order.begin(), order.end()).size(), 6u);
  }
  EXPECT_GT(orders.size(), 1u);
}

TEST(Plan, TheSameSeedGivesTheSamePlanAlsoThroughItsFile) {
  const auto file = file_of("[runs]\nrepetitions = 3\n");
  auto plan = make_plan(file, {}, 11, "t");
  ASSERT_TRUE(plan);
  plan->level_values = {{1, std::nullopt}, {1, 2, 3}};
  plan->overrides.parameters["x"] = "y";
  plan->overrides.levels["a"] = {"1", "2"};
  const auto again = make_plan(file, {}, 11, "t");
  const auto read = plan_from_json(plan_to_json(*plan), "plan.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->overrides, plan->overrides);
  EXPECT_EQ(read->level_values, plan->level_values);
  for (std::size_t i = 0; i < plan->runs.size(); ++i) {
    EXPECT_EQ(plan->runs[i].cell, again->runs[i].cell);
    EXPECT_EQ(plan->runs[i].cell, read->runs[i].cell);
    EXPECT_EQ(plan->runs[i].repetition, read->runs[i].repetition);
  }
  EXPECT_TRUE(check_plan(*read, file, "plan.json"));
}

TEST(Plan, ADamagedPlanIsNamed) {
  for (const char* text : {"", "{}", "[]", "{\"schema\":\"ergometer.study-plan/9\"}", "{\"schema\":1}"}) {
    const auto plan = plan_from_json(text, "plan.json");
    ASSERT_FALSE(plan) << text;
    EXPECT_THAT(plan.error().message, HasSubstr("plan.json"));
  }
  auto plan = make_plan(file_of(""), {}, 1, "t");
  plan->cells.front().levels = {5, 0};
  EXPECT_FALSE(check_plan(*plan, file_of(""), "plan.json"));
}

TEST(Plan, AHundredThousandCells) {
  std::string levels;
  for (int i = 0; i < 317; ++i) levels += std::to_string(i) + ",";
  const auto file = file_of("", "a = [" + levels + "]\nb = [" + levels + "]\n");
  const auto plan = make_plan(file, {}, 1, "t");
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->cells.size(), 317u * 317u);
  const auto read = plan_from_json(plan_to_json(*plan), "t");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->runs.size(), plan->runs.size());
}

}  // namespace
}  // namespace ergometer
