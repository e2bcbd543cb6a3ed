// A run over several nodes and ranks: totals, lines over all, and what the error of clocks does to them.
#include <gmock/gmock.h>

#include <cmath>

#include "analysis/build_run.hpp"

namespace ergometer::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Region of_rank(Region r, int rank) {
  r.rank = rank;
  return r;
}

// Steps of power that are seen without error: readings each 10 ms by the device's own clock.
Trace stairs(double before, double from, double inside, double to, double after, double first = 0, double last = 30) {
  Channel c = power("gpu/0", Scope::gpu);
  c.window = from_seconds(0.01);
  c.gain_tolerance = 0.0;
  return trace("gpu0", c,
               readings_of([=](double t) { return t < from ? before
                                                  : t < to ? inside
                                                           : after; }, first, last, 0.01),
               0.01, true);
}

struct NodeOf {
  std::string name;
  Manifest part;
  ClockMap clock;
  std::vector<Region> regions;
  std::vector<Trace> traces;
};

Summary summarise_nodes(Manifest run, const std::vector<NodeOf>& nodes, bool backwards = false) {
  run.parts = run.parts.value_or(Parts{});
  Summariser s(run);
  for (const auto& n : nodes) {
    Node node;
    node.name = n.name;
    s.add_part(node, n.part, n.clock, n.regions, {});
  }
  std::vector<const NodeOf*> order;
  for (const auto& n : nodes) order.push_back(&n);
  if (backwards) std::reverse(order.begin(), order.end());
  for (const auto* n : order) {
    for (const auto& t : n->traces) s.add_trace(n->name, t);
    s.finish_node(n->name);
  }
  return s.finish();
}

const RegionEnergy& line(const std::vector<RegionEnergy>& regions, std::string_view path, int rank = -1) {
  for (const auto& r : regions)
    if (r.path == path && r.rank == rank) return r;
  static const RegionEnergy none;
  return none;
}

// Three nodes with two ranks each, of 0.1, 0.2 and 0.3 kW, and an epoch that all ranks had from 10 to 20 s.
std::vector<NodeOf> three_nodes() {
  std::vector<NodeOf> out;
  for (int i = 0; i < 3; ++i) {
    NodeOf n{"n" + std::to_string(i + 1), run_of(0, 30), {}, {}, {}};
    const double watts = 100.1 * (i + 1);
    for (int rank : {2 * i, 2 * i + 1}) {
      n.regions.push_back(of_rank(region("train/epoch[3]", 10, 20, {{"samples", "100"}, {"loss", "0.5"}}), rank));
      n.part.ranks.push_back({rank, 1, n.name, 0, {}, {}, {}});
    }
    n.traces = {stairs(watts, 0, watts, 99, watts)};
    out.push_back(std::move(n));
  }
  return out;
}

TEST(Nodes, TheTotalIsTheSumOfTheNodesExactly) {
  const auto s = summarise_nodes(run_of(0, 30), three_nodes());
  ASSERT_EQ(s.nodes.size(), 3U);
  double sum = 0;
  for (const auto& node : s.nodes) {
    double parts = 0;
    for (const auto& d : node.domains)
      if (d.in_total) parts += d.energy_j.value();
    EXPECT_EQ(node.energy_j.value(), parts);
    sum += node.energy_j.value();
  }
  EXPECT_EQ(s.run.energy_j.value(), sum);
  EXPECT_NEAR(sum, 600.6 * 30, 1e-6);
  EXPECT_THAT(s.nodes[1].ranks, ElementsAre(2, 3));
  EXPECT_FALSE(s.run.partial);
}

TEST(Nodes, TheOrderInWhichNodesComeDoesNotMatter) {
  const auto forth = summarise_nodes(run_of(0, 30), three_nodes());
  const auto back = summarise_nodes(run_of(0, 30), three_nodes(), true);
  EXPECT_EQ(forth.run.energy_j, back.run.energy_j);
  EXPECT_EQ(forth.run.uncertainty_j, back.run.uncertainty_j);
  EXPECT_EQ(forth.regions.at(0).energy_j, back.regions.at(0).energy_j);
  EXPECT_EQ(forth.nodes.at(0).name, back.nodes.at(0).name);
}

TEST(Nodes, ARegionOfAllRanksIsToldOnceOverAllNodes) {
  const auto s = summarise_nodes(run_of(0, 30), three_nodes());
  ASSERT_EQ(s.regions.size(), 1U);
  const auto& all = s.regions[0];
  EXPECT_EQ(all.path, "train/epoch[3]");
  EXPECT_EQ(all.index, 3);
  EXPECT_EQ(all.ranks, 6);
  EXPECT_EQ(all.rank, -1);
  EXPECT_NEAR(all.duration_s, 10, 1e-9);
  EXPECT_NEAR(all.t_begin_s, 10, 1e-9);
  // Not twice a node, though each ran two ranks.
  EXPECT_NEAR(all.energy_j.value(), 6006, 1e-3);
  ASSERT_EQ(all.domains.size(), 1U);
  EXPECT_NEAR(all.domains[0].energy_j.value(), 6006, 1e-3);
  EXPECT_NEAR(all.domains[0].mean_power_w.value(), 600.6, 1e-6);
  // Work adds up over ranks, other attributes are averaged.
  EXPECT_EQ(all.metrics.at("samples"), 600);
  EXPECT_EQ(all.metrics.at("loss"), 0.5);
  EXPECT_NEAR(all.metrics.at("energy_per_sample_j"), 10.01, 1e-6);
  // Each rank's own region keeps its node.
  ASSERT_EQ(s.rank_regions.size(), 6U);
  EXPECT_EQ(line(s.rank_regions, "train/epoch[3]", 3).node, "n2");
  EXPECT_NEAR(line(s.rank_regions, "train/epoch[3]", 3).energy_j.value(), 2002, 1e-3);
}

TEST(Nodes, ARankThatMarksAloneIsToldOverAllNodesToo) {
  auto nodes = three_nodes();
  nodes[0].regions = {of_rank(region("train", 5, 25), 0)};
  nodes[1].regions.clear();
  nodes[2].regions.clear();
  const auto s = summarise_nodes(run_of(0, 30), nodes);
  ASSERT_EQ(s.regions.size(), 1U);
  EXPECT_EQ(s.regions[0].ranks, 1);
  EXPECT_NEAR(s.regions[0].energy_j.value(), 600.6 * 20, 1e-3);
  EXPECT_NEAR(s.rank_regions.at(0).energy_j.value(), 100.1 * 20, 1e-3);
}

TEST(Nodes, RanksThatAreNotTogetherAreOneLineWithoutTheTimeBetween) {
  auto nodes = three_nodes();
  nodes.pop_back();
  nodes[0].regions = {of_rank(region("eval", 0, 4), 0)};
  nodes[1].regions = {of_rank(region("eval", 2, 6), 2), of_rank(region("eval", 20, 22), 3)};
  const auto s = summarise_nodes(run_of(0, 30), nodes);
  ASSERT_EQ(s.regions.size(), 1U);
  EXPECT_NEAR(s.regions[0].duration_s, 8, 1e-9);
  EXPECT_NEAR(s.regions[0].energy_j.value(), 300.3 * 8, 1e-3);
}

TEST(Nodes, SeveralRanksOfOneNodeAreOneLine) {
  const auto s = summarise(run_of(0, 30), {stairs(100, 0, 100, 99, 100)},
                           {of_rank(region("train", 0, 10), 0), of_rank(region("train", 0.5, 10.5), 1)});
  ASSERT_EQ(s.regions.size(), 1U);
  EXPECT_EQ(s.regions[0].ranks, 2);
  EXPECT_NEAR(s.regions[0].energy_j.value(), 1050, 1e-3);
  EXPECT_EQ(s.rank_regions.size(), 2U);
  // Without ranks nothing is joined: two processes may do the same thing for different reasons.
  const auto apart =
      summarise(run_of(0, 30), {stairs(100, 0, 100, 99, 100)}, {region("train", 0, 10), region("train", 0.5, 10.5)});
  EXPECT_EQ(apart.regions.size(), 2U);
  EXPECT_THAT(apart.rank_regions, IsEmpty());
}

TEST(Nodes, EachNodeCountsForItsOwnTime) {
  auto nodes = three_nodes();
  // n3 joins late and leaves early: it was not part of the run before and after.
  nodes[2].part.begin = at(12);
  nodes[2].part.end = at(17);
  nodes[2].traces = {stairs(300.3, 0, 300.3, 99, 300.3, 11, 18)};
  const auto s = summarise_nodes(run_of(0, 30), nodes);
  EXPECT_NEAR(s.run.energy_j.value(), 300.3 * 30 + 300.3 * 5, 1e-3);
  EXPECT_NEAR(s.nodes[2].begin_s, 12, 1e-9);
  EXPECT_NEAR(s.nodes[2].duration_s.value(), 5, 1e-9);
  EXPECT_FALSE(s.run.partial);
  EXPECT_NEAR(s.regions[0].energy_j.value(), 300.3 * 10 + 300.3 * 5, 1e-3);
  EXPECT_GT(s.regions[0].coverage, 0.99);
}

TEST(Nodes, AMissingNodeMakesTheTotalPartial) {
  auto run = run_of(0, 30);
  run.state = "incomplete";
  run.parts = Parts{};
  run.parts->missing = {"n4"};
  const auto s = summarise_nodes(run, three_nodes());
  EXPECT_TRUE(s.run.partial);
  EXPECT_FALSE(s.run.valid);
  EXPECT_THAT(s.run.missing_nodes, ElementsAre("n4"));
  EXPECT_EQ(count_warnings(s, "run-cut"), 0U);
}

// A node of 100 W that takes 300 W from 10 to 20 s, whose clock is known to `error` seconds, and a rank elsewhere that
// marks these ten seconds.
Summary with_clock_error(double error, double before = 100, double inside = 300, double after = 100) {
  std::vector<NodeOf> nodes(2);
  nodes[0] = {"n1", run_of(0, 30), {}, {of_rank(region("step", 10, 20), 0)}, {stairs(50, 0, 50, 99, 50)}};
  const ClockOffset begin{at(0), Nanos(0), from_seconds(error)}, end{at(30), Nanos(0), from_seconds(error)};
  nodes[1] = {"n2", run_of(0, 30), ClockMap({begin, end}), {}, {stairs(before, 10, inside, 20, after)}};
  return summarise_nodes(run_of(0, 30), nodes);
}

TEST(Nodes, TheErrorOfAClockCountsAsTheStepThatItMayMiss) {
  const double known = with_clock_error(1e-9).regions.at(0).uncertainty_j.value();
  // Half a second late or early: half a second of 300 W is taken for one of 100 W.
  const auto s = with_clock_error(0.5);
  EXPECT_NEAR(s.regions.at(0).energy_j.value(), 50 * 10 + 3000, 2);
  const double clock = std::sqrt(std::pow(s.regions[0].uncertainty_j.value(), 2) - known * known);
  // 100 J for the place; for the length what two offsets 30 s apart of 0.5 s each allow over 10 s: a third of a second.
  EXPECT_NEAR(clock, 100 + 300 * (1.0 / 3), 3);
  EXPECT_NEAR(s.regions[0].domains.at(0).parts.clock_j, clock, 3);
  // What a node's own marks bound does not depend on any clock.
  EXPECT_EQ(s.rank_regions.at(0).domains.at(0).parts.clock_j, 0);
  // Nor does the run.
  EXPECT_EQ(s.run.uncertainty_j.value(), with_clock_error(1e-9).run.uncertainty_j.value());
}

TEST(Nodes, WithoutAStepOnlyTheLengthIsInDoubt) {
  const auto s = with_clock_error(0.5, 300, 300, 300);
  EXPECT_NEAR(s.regions.at(0).domains.at(0).parts.clock_j, 100, 1);
}

TEST(Nodes, ErrorsOfOneClockAddUpOverDevices) {
  std::vector<NodeOf> nodes(2);
  nodes[0] = {"n1", run_of(0, 30), {}, {of_rank(region("step", 10, 20), 0)}, {}};
  const ClockOffset begin{at(0), Nanos(0), from_seconds(0.1)}, end{at(30), Nanos(0), from_seconds(0.1)};
  nodes[1] = {"n2", run_of(0, 30), ClockMap({begin, end}), {}, {}};
  for (int gpu = 0; gpu < 4; ++gpu) {
    auto t = stairs(100, 10, 300, 20, 100);
    t.info.name = "gpu" + std::to_string(gpu);
    t.info.channels[0].domain = "gpu/" + std::to_string(gpu);
    nodes[1].traces.push_back(std::move(t));
  }
  const auto s = summarise_nodes(run_of(0, 30), nodes);
  double one = s.regions.at(0).domains.at(0).parts.clock_j;
  EXPECT_GT(one, 15);
  // All four step together: four times the one, not twice.
  EXPECT_GT(s.regions[0].uncertainty_j.value(), 3.9 * one);
}

TEST(Nodes, SumsOverManyNodesSayTheSameThingOnce) {
  std::vector<NodeOf> nodes;
  for (int i = 0; i < 100; ++i) {
    NodeOf n{"n" + std::to_string(100 + i), run_of(0, 30), {}, {}, {stairs(10, 0, 10, 99, 10)}};
    n.traces.push_back(trace("package0", counter("package/0", Scope::package),
                             {{0, 1000.0 + i}, {10, 1000.0 + i}, {20, 100.0}, {30, 100.0}}, 10));
    nodes.push_back(std::move(n));
  }
  const auto s = summarise_nodes(run_of(0, 30), nodes);
  EXPECT_EQ(count_warnings(s, "counter-reset"), 1U);
  EXPECT_THAT(warning_text(s, "counter-reset"),
              HasSubstr("(node n100, n101, n102, n103, n104, n105, n106, n107 and 92 more)"));
  EXPECT_EQ(s.nodes.size(), 100U);
}

}  // namespace
}  // namespace ergometer::test
