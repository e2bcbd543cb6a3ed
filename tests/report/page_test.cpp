// What the report's page is made of: thinned readings, spreads, lanes, JSON and HTML.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/html_page.hpp"
#include "report/lanes.hpp"
#include "report/page_run.hpp"
#include "report/page_study.hpp"
#include "report/thin.hpp"

namespace ergometer::test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Readings {
  std::vector<std::int64_t> t;
  std::vector<double> v;
};

Readings wave(std::size_t n, std::int64_t step) {
  Readings out;
  for (std::size_t i = 0; i < n; ++i) {
    out.t.push_back(static_cast<std::int64_t>(i) * step);
    out.v.push_back(100 + 50 * std::sin(static_cast<double>(i) * 0.01));
  }
  return out;
}

std::vector<double> values_of(const ThinSeries& s) {
  std::vector<double> out;
  for (const auto& v : s.values)
    if (v) out.push_back(*v);
  return out;
}

TEST(Thin, KeepsEveryPeakAndItsTime) {
  auto r = wave(100'000, 10);
  r.v[12'345] = 9999;
  r.v[77'777] = -5;
  const auto thinned = thin(r.t, r.v, 100, 500);
  EXPECT_LE(thinned.size(), 1002u);
  const auto at = [&](double value) {
    for (std::size_t i = 0; i < thinned.size(); ++i)
      if (thinned.values[i] == value) return thinned.t_ns[i];
    return std::int64_t{-1};
  };
  EXPECT_EQ(at(9999), 123'450);
  EXPECT_EQ(at(-5), 777'770);
  EXPECT_TRUE(std::is_sorted(thinned.t_ns.begin(), thinned.t_ns.end()));
}

TEST(Thin, KeepsAllOfFewReadings) {
  const std::vector<std::int64_t> t{0, 10, 20, 30};
  const std::vector<double> v{1, 3, 2, 4};
  EXPECT_THAT(values_of(thin(t, v, 100, 100)), ElementsAre(1, 3, 2, 4));
}

TEST(Thin, OneReadingAndNone) {
  EXPECT_THAT(values_of(thin(std::vector<std::int64_t>{5}, std::vector<double>{7}, 100, 10)), ElementsAre(7));
  EXPECT_EQ(thin({}, {}, 100, 10).size(), 0u);
}

TEST(Thin, AGapHasBothItsEndsAndNoValueBetween) {
  std::vector<std::int64_t> t;
  std::vector<double> v;
  for (int i = 0; i < 1000; ++i) t.push_back(i < 500 ? i : i + 5000), v.push_back(i < 500 ? 1 : 2);
  const auto s = thin(t, v, 5, 10);
  std::size_t gaps = 0;
  for (std::size_t i = 0; i < s.size(); ++i)
    if (!s.values[i]) {
      ++gaps;
      EXPECT_EQ(s.t_ns[i - 1], 499);
      EXPECT_EQ(s.t_ns[i + 1], 5500);
    }
  EXPECT_EQ(gaps, 1u);
}

TEST(Thin, OfTooManyGapsTheLongestAreShown) {
  std::vector<std::int64_t> t{0};
  for (int i = 1; i < 1000; ++i) t.push_back(t.back() + (i == 700 ? 90 : 20));
  const std::vector<double> v(t.size(), 1.0);
  const auto s = thin(t, v, 5, 10);
  EXPECT_EQ(std::count(s.values.begin(), s.values.end(), std::nullopt), 1);
}

TEST(SpreadOfTime, WeighsReadingsByTheirTimeAndGapsByTheUsualDistance) {
  // 1 for 30 ns, 9 for 10 ns, then a gap before which the usual 10 ns count, and 10 ns at the end.
  const auto s =
      spread_of_time(std::vector<std::int64_t>{0, 30, 40, 1000}, std::vector<double>{1, 9, 9, 9}, 50, 10, 0, 10, 2);
  EXPECT_THAT(s.share, ElementsAre(DoubleNear(0.5, 1e-12), DoubleNear(0.5, 1e-12)));
  EXPECT_TRUE(spread_of_time({}, {}, 50, 10, 0, 10, 2).share.empty());
}

TEST(MeanOverTime, LeavesGapsOut) {
  EXPECT_DOUBLE_EQ(*mean_over_time(std::vector<std::int64_t>{0, 10, 1000, 1010}, std::vector<double>{1, 3, 5, 5}, 50),
                   3.5);
  EXPECT_DOUBLE_EQ(*mean_over_time(std::vector<std::int64_t>{3}, std::vector<double>{8}, 50), 8);
  EXPECT_FALSE(mean_over_time({}, {}, 50));
}

TEST(PartMeans, BeginAtMultiplesOfTheirWidthAndLeaveEmptyPartsUnset) {
  const auto p = part_means(std::vector<std::int64_t>{15, 18, 41}, std::vector<double>{1, 3, 7}, 10);
  EXPECT_EQ(p.first, 1);
  EXPECT_THAT(p.values, ElementsAre(2, std::nullopt, std::nullopt, 7));
  EXPECT_EQ(part_width(999, 100), 10);
  EXPECT_EQ(part_width(1100, 100), 20);
}

Region region(std::int64_t begin, std::int64_t end, std::string path, int rank = -1) {
  Region r;
  r.begin = mono_ns(begin);
  r.end = mono_ns(end);
  r.path = std::move(path);
  r.rank = rank;
  return r;
}

TEST(MakeLanes, OneRowADepthAndNarrowNeighboursTogether) {
  std::vector<Region> regions{region(0, 1000, "train")};
  for (int i = 0; i < 1000; ++i) regions.push_back(region(i, i + 1, "train/step[" + std::to_string(i) + "]"));
  const auto lanes = make_lanes(regions, 10);
  ASSERT_EQ(lanes.depths.size(), 2u);
  EXPECT_EQ(lanes.depths[0].size(), 1u);
  EXPECT_LE(lanes.depths[1].size(), 101u);
  std::size_t members = 0;
  for (const auto& bar : lanes.depths[1]) members += bar.count;
  EXPECT_EQ(members, 1000u);
  EXPECT_EQ(lanes.depths[1][0].path, "train/step");
}

TEST(MakeLanes, ShowsOneRankAndCountsTheOthers) {
  const auto lanes = make_lanes({region(0, 10, "a", 1), region(0, 10, "b", 0), region(20, 30, "b", 0)}, 0);
  EXPECT_EQ(lanes.track, "rank 0");
  EXPECT_EQ(lanes.regions, 2u);
  EXPECT_EQ(lanes.hidden, 1u);
  EXPECT_TRUE(make_lanes({}, 0).depths.empty());
}

TEST(MakeTracks, EachRankHasLanesOfItsOwn) {
  const auto tracks = make_tracks({region(0, 10, "a", 1), region(0, 10, "b", 0), region(20, 30, "b", 0)}, 0, 8);
  ASSERT_EQ(tracks.size(), 2u);
  EXPECT_EQ(tracks[0].track, "rank 0");
  EXPECT_EQ(tracks[0].regions, 2u);
  EXPECT_EQ(tracks[1].track, "rank 1");
  EXPECT_EQ(tracks[0].hidden + tracks[1].hidden, 0u);
  const auto few = make_tracks({region(0, 10, "a", 1), region(0, 10, "b", 0)}, 0, 1);
  ASSERT_EQ(few.size(), 1u);
  EXPECT_EQ(few[0].hidden, 1u);
  // Without ranks the one track has no name.
  EXPECT_EQ(make_tracks({region(0, 10, "a")}, 0, 8).at(0).track, "");
}

TEST(Html, TextAndJsonCannotEndTheirPlace) {
  EXPECT_EQ(html_escaped("<a href='x'>&\"\x01"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\xEF\xBF\xBD");
  EXPECT_EQ(script_safe(R"({"a":"</script>&"})"), R"({"a":"\u003c/script\u003e\u0026"})");
  const PageAssets assets{"run()", "body{}", "sha256-x", ""};
  const auto page = html_page("<b>", "<i>", "{}", assets);
  EXPECT_THAT(page, HasSubstr("<title>&lt;b&gt;</title>"));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(page, Not(HasSubstr("<i>")));
  EXPECT_THAT(page, HasSubstr("script-src 'sha256-x'"));
}

TEST(RunPageJson, WhatIsUnknownIsNull) {
  const auto json = nlohmann::json::parse(run_page_json({}));
  EXPECT_EQ(json["schema"], "ergometer.page/1");
  EXPECT_TRUE(json["summary"]["run"]["energy_j"].is_null());
  EXPECT_TRUE(json["factors"]["price_per_kwh"].is_null());
  EXPECT_TRUE(json["manifest"]["started"].is_null());
  EXPECT_TRUE(json["series"].empty());
}

TEST(RunPageJson, TimesReadBackToTheirStep) {
  RunPage page;
  page.manifest.begin = mono_ns(1'000'000'000);
  PageSeries s;
  s.points.t_ns = {999'000'000, 1'000'000'000, 4'500'000'000};
  s.points.values = {1.0, std::nullopt, 123456.789};
  s.readings = 3;
  page.series.push_back(s);
  const auto json = nlohmann::json::parse(run_page_json(page))["series"][0];
  EXPECT_EQ(json["t_step_s"], 1e-3);
  EXPECT_EQ(json["t"], (std::vector<int>{-1, 1, 3500}));
  EXPECT_TRUE(json["v"][1].is_null());
  EXPECT_EQ(json["v"][2], 123460);
}

TEST(RunPageJson, OfVeryManyRegionsEpochsComeFirst) {
  RunPage page;
  for (int i = 0; i < 3000; ++i) {
    RegionEnergy r;
    r.name = i % 1000 == 999 ? "epoch" : "step";
    r.path = r.name + "[" + std::to_string(i) + "]";
    page.summary.regions.push_back(r);
  }
  const auto json = nlohmann::json::parse(run_page_json(page));
  EXPECT_EQ(json["regions_total"], 3000);
  const auto& shown = json["summary"]["regions"];
  EXPECT_LE(shown.size(), 1000u);
  EXPECT_EQ(std::count_if(shown.begin(), shown.end(), [](const auto& r) { return r["name"] == "epoch"; }), 3);
}

TEST(StudyPageJson, BytesThatAreNoTextAreReplaced) {
  StudyPage page;
  page.table.name = "\xff<x>";
  const auto json = nlohmann::json::parse(study_page_json(page));
  EXPECT_EQ(json["kind"], "study");
  EXPECT_EQ(json["table"]["name"], "\xEF\xBF\xBD<x>");
  EXPECT_TRUE(json["time_metric"].is_null());
}

}  // namespace
}  // namespace ergometer::test
