// The account of a job: each moment of each device once, whoever measured it.
#include "cluster/job_account.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ergometer {
namespace {

using std::chrono::seconds;

DomainEnergy device(const std::string& name, double energy_j, double uncertainty_j = 0, Scope scope = Scope::package) {
  DomainEnergy d;
  d.domain = name;
  d.scope = scope;
  d.energy_j = energy_j;
  d.uncertainty_j = uncertainty_j;
  d.max_power_w = 500;
  d.coverage = 1;
  return d;
}

JobPart part(const std::string& node, const std::string& step, int begin_s, int end_s,
             std::vector<DomainEnergy> domains) {
  JobPart p;
  p.path = "/runs/" + step;
  p.step = step;
  p.node = node;
  p.begin = wall_ns(0) + seconds(begin_s);
  p.end = wall_ns(0) + seconds(end_s);
  p.domains = std::move(domains);
  return p;
}

JobPart record(const std::string& node, int begin_s, int end_s, std::vector<DomainEnergy> domains) {
  auto p = part(node, "", begin_s, end_s, std::move(domains));
  p.source = JobPart::Source::daemon;
  return p;
}

// A part of 100 W.
std::vector<DomainEnergy> cut_at_100_w(const JobPart& p, WallTime begin, WallTime end) {
  auto domains = p.domains;
  for (auto& d : domains) d.energy_j = 100 * ergometer::seconds(end - begin);
  return domains;
}

std::vector<DomainEnergy> never(const JobPart&, WallTime, WallTime) {
  ADD_FAILURE() << "nothing had to be cut";
  return {};
}

TEST(JobAccount, F92_RanksOfANodeMeasureItOnce) {
  // Four ranks on two nodes, each with a run of its own that holds its node's energy.
  const std::vector<JobPart> parts{
      part("n1", "0", 0, 10, {device("package/0", 500)}), part("n1", "0", 0, 10, {device("package/0", 500)}),
      part("n2", "0", 0, 10, {device("package/0", 700)}), part("n2", "0", 0, 10, {device("package/0", 700)})};
  const auto account = account_job(parts, {"n1", "n2"}, 10, never);
  EXPECT_EQ(account.energy_j, 1200.0);
  ASSERT_EQ(account.nodes.size(), 2u);
  ASSERT_EQ(account.steps.size(), 1u);
  EXPECT_EQ(account.steps[0].energy_j, 1200.0);
  EXPECT_THAT(account.steps[0].nodes, testing::ElementsAre("n1", "n2"));
  EXPECT_EQ(account.coverage, 1);
}

TEST(JobAccount, AStepInsideTheBatchScriptsTimeIsNotAddedToTheNode) {
  const std::vector<JobPart> parts{part("n1", "0", 20, 50, {device("package/0", 3000)}),
                                   part("n1", "batch", 0, 60, {device("package/0", 6000)}),
                                   part("n2", "0", 20, 50, {device("package/0", 3000)})};
  const auto account = account_job(parts, {"n1", "n2"}, 60, never);
  EXPECT_EQ(account.energy_j, 9000.0);
  EXPECT_EQ(account.nodes[0].energy_j, 6000.0);
  EXPECT_EQ(account.nodes[1].coverage, 0.5);
  EXPECT_EQ(account.coverage, 0.5);
  ASSERT_EQ(account.steps.size(), 2u);  // each as it was
  EXPECT_EQ(account.steps[0].step, "batch");
  EXPECT_EQ(account.steps[1].energy_j, 6000.0);
}

TEST(JobAccount, OfStepsThatOverlapTheRestIsReadAgain) {
  const std::vector<JobPart> parts{part("n1", "0", 0, 30, {device("package/0", 3000)}),
                                   part("n1", "1", 10, 50, {device("package/0", 4000)})};
  const auto account = account_job(parts, {"n1"}, 50, cut_at_100_w);
  EXPECT_EQ(account.energy_j, 5000.0);  // 30 s and the 20 s after them
  EXPECT_EQ(account.nodes[0].measured_s, 50);
}

TEST(JobAccount, ADeviceThatOnlyTheSecondStepSawCountsWhole) {
  const std::vector<JobPart> parts{
      part("n1", "batch", 0, 60, {device("package/0", 600)}),
      part("n1", "0", 10, 20, {device("package/0", 100), device("gpu/0", 2000, 0, Scope::gpu)})};
  const auto account = account_job(parts, {"n1"}, 60, never);
  EXPECT_EQ(account.energy_j, 2600.0);
}

TEST(JobAccount, TheSourceThatSawMoreOfTheTimeCountsDeviceByDevice) {
  const std::vector<JobPart> parts{
      part("n1", "0", 10, 40, {device("package/0", 3000), device("gpu/0", 9000, 0, Scope::gpu)}),
      record("n1", 0, 60, {device("package/0", 5500)})};
  const auto account = account_job(parts, {"n1"}, 60, never);
  EXPECT_EQ(account.energy_j, 14500.0);
  const auto& domains = account.nodes[0].domains;
  ASSERT_EQ(domains.size(), 2u);
  EXPECT_EQ(domains[0].energy.domain, "gpu/0");
  EXPECT_EQ(domains[0].source, JobPart::Source::run);
  EXPECT_EQ(domains[1].source, JobPart::Source::daemon);
  EXPECT_EQ(domains[1].other_j, 3000.0);
  // The step's own figure stays the step's.
  EXPECT_EQ(account.steps[0].energy_j, 12000.0);
}

TEST(JobAccount, ANodeMeterIsAddedOnlyWhereNothingInsideIs) {
  const auto meter = device("node", 9000, 0, Scope::node);
  const auto alone = account_job({record("n1", 0, 10, {meter})}, {"n1"}, 10, never);
  EXPECT_EQ(alone.energy_j, 9000.0);
  const auto both = account_job({record("n1", 0, 10, {meter}), part("n1", "0", 0, 10, {device("package/0", 4000)})},
                                {"n1"}, 10, never);
  EXPECT_EQ(both.energy_j, 4000.0);
  EXPECT_FALSE(both.nodes[0].domains[0].energy.in_total);
}

TEST(JobAccount, AMissingNodeMakesTheTotalIncompleteAndIsNamed) {
  auto nothing = device("package/0", 0);
  nothing.energy_j.reset();
  const auto account =
      account_job({part("n1", "0", 0, 10, {device("package/0", 1000)}), part("n2", "0", 0, 10, {nothing})},
                  {"n1", "n2", "n3"}, 10, never);
  EXPECT_THAT(account.missing, testing::ElementsAre("n2", "n3"));
  EXPECT_EQ(account.energy_j, 1000.0);
  EXPECT_EQ(account.coverage, 0);
  const auto none = account_job({}, {"n1"}, 10, never);
  EXPECT_EQ(none.energy_j, std::nullopt);
  EXPECT_EQ(none.max_power_w, std::nullopt);
}

TEST(JobAccount, ErrorsOfOneDeviceAddAndThoseOfNodesDoNot) {
  auto first = device("package/0", 1000, 5), second = device("package/0", 1000, 5);
  first.parts = {3, 0, 4, 0};
  second.parts = {3, 0, 4, 0};
  const auto one = account_job({part("n1", "0", 0, 10, {first}), part("n1", "1", 10, 20, {second})}, {"n1"}, 20, never);
  EXPECT_NEAR(one.uncertainty_j.value_or(0), std::sqrt(18.0 + 64.0), 1e-9);  // sqrt(3^2+3^2) and 4+4
  const auto two =
      account_job({part("n1", "0", 0, 10, {first}), part("n2", "0", 0, 10, {second})}, {"n1", "n2"}, 10, never);
  EXPECT_NEAR(two.uncertainty_j.value_or(0), std::sqrt(50.0), 1e-9);
}

TEST(JobAccount, AGpuIsIdleIfNoStepUsedIt) {
  auto first = part("n1", "0", 0, 10, {device("gpu/0", 5000, 0, Scope::gpu), device("gpu/1", 700, 0, Scope::gpu)});
  first.idle_gpus = {"gpu/1"};
  auto second = part("n1", "1", 10, 20, {device("gpu/0", 600, 0, Scope::gpu), device("gpu/1", 700, 0, Scope::gpu)});
  second.idle_gpus = {"gpu/0", "gpu/1"};
  const auto account = account_job({first, second}, {"n1"}, 20, never);
  EXPECT_THAT(account.nodes[0].idle_gpus, testing::ElementsAre("gpu/1"));
  EXPECT_EQ(account.nodes[0].idle_gpu_j, 1400.0);
}

}  // namespace
}  // namespace ergometer
