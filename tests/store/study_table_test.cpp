// table.json: there and back, and what a damaged one is answered with.
#include "store/study_table_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/temp_dir.hpp"

namespace ergometer {
namespace {

using ::testing::HasSubstr;

StudyTable small_study() {
  StudyTable t;
  t.name = "caps \"and\" <batch> \xF0\x9F\x94\x8B";
  t.description = "two caps";
  t.factors = {{"power_limit", "W", {"150W", "250W"}, {150, 250}}, {"network", "", {"a", "b"}, {{}, {}}}};
  t.metrics = {{"seconds_per_epoch", "time per epoch", "s", true}, {"samples_per_s", "samples", "1/s", false}};
  t.cells = {{{0, 1}}, {{1, 0}}};
  t.runs = {{0, 0, 0, 3, "runs/0001", Verdict::valid, {}, {{"seconds_per_epoch", {12.25, 0.5}}}},
            {1, 1, 2, {}, "", Verdict::invalid, {"cap was 200 W", "busy"}, {{"samples_per_s", {1e-9, {}}}}},
            {1, 0, 0, {}, "", Verdict::missing, {}, {}}};
  t.warnings = {{"code", "message", "remedy"}};
  return t;
}

TEST(StudyTableJson, ThereAndBack) {
  const StudyTable t = small_study();
  const auto back = study_table_from_json(study_table_to_json(t), "FILE");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->name, t.name);
  EXPECT_EQ(back->description, t.description);
  ASSERT_EQ(back->factors.size(), 2U);
  EXPECT_EQ(back->factors[0].unit, "W");
  EXPECT_EQ(back->factors[0].levels, t.factors[0].levels);
  EXPECT_EQ(back->factors[0].values, t.factors[0].values);
  EXPECT_EQ(back->factors[1].values, t.factors[1].values);
  ASSERT_EQ(back->metrics.size(), 2U);
  EXPECT_EQ(back->metrics[1].title, "samples");
  EXPECT_FALSE(back->metrics[1].lower_is_better);
  ASSERT_EQ(back->cells.size(), 2U);
  EXPECT_EQ(back->cells[0].levels, t.cells[0].levels);
  ASSERT_EQ(back->runs.size(), 3U);
  EXPECT_EQ(back->runs[0].order, 3);
  EXPECT_EQ(back->runs[0].folder, "runs/0001");
  EXPECT_EQ(back->runs[0].metrics.at("seconds_per_epoch").value, 12.25);
  EXPECT_EQ(back->runs[0].metrics.at("seconds_per_epoch").uncertainty, 0.5);
  EXPECT_EQ(back->runs[1].verdict, Verdict::invalid);
  EXPECT_EQ(back->runs[1].block, 2);
  EXPECT_EQ(back->runs[1].reasons, t.runs[1].reasons);
  EXPECT_FALSE(back->runs[1].metrics.at("samples_per_s").uncertainty);
  EXPECT_FALSE(back->runs[1].order);
  EXPECT_EQ(back->runs[2].verdict, Verdict::missing);
  EXPECT_EQ(back->warnings, t.warnings);
  EXPECT_EQ(study_table_to_json(*back), study_table_to_json(t));
}

TEST(StudyTableJson, WhatIsNotFiniteIsLeftOut) {
  StudyTable t = small_study();
  const double infinite = std::numeric_limits<double>::infinity();
  t.runs[0].metrics["seconds_per_epoch"] = {std::numeric_limits<double>::quiet_NaN(), 1.0};
  t.runs[1].metrics["samples_per_s"] = {5, infinite};
  const auto back = study_table_from_json(study_table_to_json(t), "FILE");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(back->runs[0].metrics.empty());
  EXPECT_FALSE(back->runs[1].metrics.at("samples_per_s").uncertainty);
}

// What becomes of the text with one part of it replaced.
std::string complaint_after(const std::string& from, const std::string& to) {
  std::string text = study_table_to_json(small_study());
  const auto at = text.find(from);
  if (at == std::string::npos) return "the text has no " + from;
  text.replace(at, from.size(), to);
  const auto read = study_table_from_json(text, "FILE");
  return read ? "no complaint" : read.error().message;
}

TEST(StudyTableJson, NamesWhatIsWrong) {
  EXPECT_THAT(complaint_after("study-table/1", "study-table/2"), HasSubstr("version ergometer.study-table/2"));
  EXPECT_THAT(complaint_after("ergometer.study-table/1", "ergometer.run/1"), HasSubstr("something else"));
  EXPECT_THAT(complaint_after("\"cell\":0", "\"cell\":2"), HasSubstr("runs[0].cell must be an index from 0 to 1"));
  EXPECT_THAT(complaint_after("\"cell\":0", "\"cell\":-1"), HasSubstr("runs[0].cell must be"));
  EXPECT_THAT(complaint_after("\"cell\":0,", ""), HasSubstr("runs[0].cell must be"));
  EXPECT_THAT(complaint_after("\"levels\":[0,1]", "\"levels\":[0]"), HasSubstr("cells[0].levels must be one index"));
  EXPECT_THAT(complaint_after("\"levels\":[0,1]", "\"levels\":[0,9]"), HasSubstr("from 0 to 1, not 9"));
  EXPECT_THAT(complaint_after("[150.0,250.0]", "[150.0]"), HasSubstr("factors[0].values must be as long as levels"));
  EXPECT_THAT(complaint_after("[150.0,250.0]", "[150.0,\"x\"]"), HasSubstr("factors[0].values"));
  EXPECT_THAT(complaint_after("\"name\":\"network\"", "\"name\":\"power_limit\""), HasSubstr("twice"));
  EXPECT_THAT(complaint_after("\"verdict\":\"valid\"", "\"verdict\":\"good\""), HasSubstr("runs[0].verdict must be"));
  EXPECT_THAT(complaint_after("{\"seconds_per_epoch\":", "{\"joules\":"), HasSubstr("runs[0].metrics.joules must be"));
  EXPECT_THAT(complaint_after("\"value\":12.25", "\"value\":\"12\""), HasSubstr("seconds_per_epoch.value must be"));
}

TEST(StudyTableJson, CutAtAnyByteIsAnErrorAndNeverACrash) {
  const std::string text = study_table_to_json(small_study());
  for (std::size_t length = 0; length + 2 < text.size(); ++length) {
    const auto read = study_table_from_json(std::string_view(text).substr(0, length), "FILE");
    ASSERT_FALSE(read) << length;
    EXPECT_EQ(read.error().code, ErrorCode::corrupt);
  }
}

TEST(StudyTableJson, FolderOrFile) {
  const test::TempDir dir;
  const auto none = read_study_table(dir.path());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::not_found);
  EXPECT_THAT(none.error().hint, HasSubstr("ergometer study run"));
  EXPECT_FALSE(is_study(dir.path()));
  ASSERT_TRUE(write_study_table(dir.path(), small_study()));
  EXPECT_TRUE(is_study(dir.path()));
  EXPECT_TRUE(is_study(dir / "table.json"));
  EXPECT_TRUE(read_study_table(dir.path()));
  EXPECT_TRUE(read_study_table(dir / "table.json"));
}

TEST(StudyTableJson, ThousandsOfRuns) {
  StudyTable t;
  for (int m = 0; m < 20; ++m) t.metrics.push_back({"metric_" + std::to_string(m), "", "J", true});
  t.factors = {{"n", "", {}, {}}};
  for (std::size_t i = 0; i < 3400; ++i) {
    t.factors[0].levels.push_back(std::to_string(i));
    t.factors[0].values.emplace_back(static_cast<double>(i));
    t.cells.push_back({{i}});
    StudyRun run{i, 0, 0, 0, "runs/" + std::to_string(i), Verdict::valid, {}, {}};
    for (const auto& metric : t.metrics) run.metrics[metric.name] = {1.0 / (1.0 + static_cast<double>(i)), 0.125};
    t.runs.push_back(std::move(run));
  }
  const std::string text = study_table_to_json(t);
  EXPECT_LT(text.size(), 8U << 20U);
  const auto back = study_table_from_json(text, "FILE");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->runs.size(), 3400U);
  EXPECT_EQ(back->runs[3399].metrics.at("metric_19").value, 1.0 / 3400);
}

}  // namespace
}  // namespace ergometer
