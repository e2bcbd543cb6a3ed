// A run over several nodes as text, JSON and CSV: each node, each rank, and how little there is of very many.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/csv.hpp"
#include "report/json.hpp"
#include "report/nodes_table.hpp"
#include "report/text.hpp"

namespace ergometer::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

DomainEnergy gpu(int index, double energy) {
  DomainEnergy d;
  d.domain = fmt::format("gpu/{}", index);
  d.device = fmt::format("GPU-{}", index);
  d.scope = Scope::gpu;
  d.method = Method::samples;
  d.energy_j = energy;
  d.uncertainty_j = 3;
  d.mean_power_w = energy / 10;
  d.coverage = 1;
  return d;
}

Summary over(int nodes) {
  Summary s;
  s.run.duration_s = 10;
  s.run.energy_j = 0;
  for (int i = 0; i < nodes; ++i) {
    NodeSummary node;
    node.name = fmt::format("n{:03}", i);
    node.duration_s = 10;
    node.domains = {gpu(0, 1000 + i), gpu(1, 2000)};
    node.energy_j = 3000.0 + i;
    node.uncertainty_j = 5;
    node.coverage = 1;
    node.ranks = {2 * i, 2 * i + 1};
    *s.run.energy_j += *node.energy_j;
    s.nodes.push_back(node);
  }
  RegionEnergy whole;
  whole.path = whole.name = "train";
  whole.duration_s = 4;
  whole.energy_j = 400;
  whole.ranks = 2 * nodes;
  s.regions = {whole};
  for (int rank = 0; rank < 2 * nodes && rank < 20; ++rank) {
    RegionEnergy own = whole;
    own.ranks = 0;
    own.rank = rank;
    own.node = s.nodes[static_cast<std::size_t>(rank / 2)].name;
    own.energy_j = 100;
    own.domains = {gpu(0, 60), gpu(1, 40)};
    s.rank_regions.push_back(own);
  }
  return s;
}

Manifest ended() {
  Manifest m;
  m.state = "complete";
  return m;
}

TEST(NodesText, EachNodeHasARow) {
  auto s = over(3);
  s.run.missing_nodes = {"n9"};
  TextOptions options;
  options.width = 120;
  const auto text = render_text(ended(), s, options);
  EXPECT_THAT(text, HasSubstr("nodes     3, 6 ranks; missing: n9"));
  EXPECT_THAT(text, ContainsRegex("n001 +2,3 +10.00 +3[.]001 kJ"));
  EXPECT_THAT(text, HasSubstr("n001 gpu/0"));
  // Regions once, without saying to whom they belong.
  EXPECT_THAT(text, Not(HasSubstr("train rank")));
}

TEST(NodesText, RanksAreShownWhenAskedFor) {
  TextOptions options;
  options.width = 120;
  options.by = GroupBy::rank;
  const auto text = render_text(ended(), over(2), options);
  EXPECT_THAT(text, HasSubstr("train rank 0 on n000"));
  EXPECT_THAT(text, HasSubstr("train rank 3 on n001"));
}

TEST(NodesText, OfManyNodesTheExtremesAreShown) {
  const auto text = render_text(ended(), over(100), {});
  EXPECT_THAT(text, HasSubstr("n099"));
  EXPECT_THAT(text, HasSubstr("n000"));
  EXPECT_THAT(text, Not(HasSubstr("n050")));
  EXPECT_THAT(text, HasSubstr("of 100 nodes those that took most and least"));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 60);
}

TEST(NodesText, OneNodeNeedsNoTable) {
  EXPECT_EQ(nodes_table(over(1), 100), "");
  EXPECT_EQ(nodes_in_a_line(over(1)), "");
}

TEST(NodesJson, RowsOfTheRunAndOfRanksAreToldApart) {
  const auto json = nlohmann::json::parse(summary_json(over(3)));
  EXPECT_EQ(json["nodes"][1]["energy_j"], 3001);
  EXPECT_EQ(json["nodes"][1]["ranks"], (std::vector<int>{2, 3}));
  EXPECT_EQ(json["nodes"][1]["domains"].size(), 2U);
  ASSERT_EQ(json["regions"].size(), 7U);
  EXPECT_EQ(json["regions"][0]["ranks"], 6);
  EXPECT_TRUE(json["regions"][0]["node"].is_null());
  EXPECT_TRUE(json["regions"][0]["rank"].is_null());
  EXPECT_TRUE(json["regions"][4]["ranks"].is_null());
  EXPECT_EQ(json["regions"][4]["node"], "n001");
  EXPECT_EQ(json["regions"][4]["rank"], 3);
}

TEST(NodesJson, OfVeryManyNodesDevicesAreToldTogether) {
  const auto text = summary_json(over(300));
  const auto json = nlohmann::json::parse(text);
  ASSERT_EQ(json["nodes"].size(), 300U);
  const auto& node = json["nodes"][7];
  EXPECT_EQ(node["energy_j"], 3007);
  ASSERT_EQ(node["domains"].size(), 1U);
  EXPECT_EQ(node["domains"][0]["domain"], "gpu");
  EXPECT_EQ(node["domains"][0]["device"], "2 devices");
  EXPECT_EQ(node["domains"][0]["energy_j"], 3007);
  EXPECT_NEAR(node["domains"][0]["uncertainty_j"].get<double>(), std::sqrt(18.0), 1e-9);
  EXPECT_FALSE(node.contains("account"));
  EXPECT_LT(text.size(), 300U * 700U);
}

TEST(NodesCsv, EveryDeviceAndEveryRankHasARow) {
  const auto csv = summary_csv(over(300));
  EXPECT_THAT(csv, HasSubstr("\nrun,n299,,,,1,0,10,false,gpu/1,GPU-1,"));
  EXPECT_THAT(csv, ContainsRegex("\nrank,n001,train,train,,1,0,4,false,gpu/0,[^\n]*,3\n"));
}

}  // namespace
}  // namespace ergometer::test
