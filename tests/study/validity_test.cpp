// Verdicts and metrics: each condition that makes a run invalid, and what an epoch's numbers are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/metrics.hpp"
#include "study/validity.hpp"

namespace ergometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ChannelReadings readings(double first, double last, std::size_t count = 100) {
  ChannelReadings channel;
  channel.count = count;
  channel.first = first;
  channel.last = last;
  channel.lowest = std::min(first, last);
  channel.highest = std::max(first, last);
  channel.sum = (first + last) / 2 * static_cast<double>(count);
  return channel;
}

// Ten seconds on one GPU at 200 W.
MeasuredRun good_run() {
  MeasuredRun run;
  run.summary.run.duration_s = 10;
  run.summary.run.energy_j = 2000;
  run.summary.run.uncertainty_j = 10;
  DomainEnergy gpu;
  gpu.domain = "gpu/0";
  gpu.scope = Scope::gpu;
  gpu.method = Method::samples;
  gpu.energy_j = 2000;
  gpu.coverage = 1;
  gpu.alternatives.push_back({Method::counter, 2020, {}, {}});
  NodeSummary node;
  node.name = "n";
  node.domains = {gpu};
  run.summary.nodes.push_back(std::move(node));
  auto power = readings(190, 206);
  power.quantity = Quantity::power;
  power.method = Method::samples;
  run.readings["gpu/0/power_w"] = power;
  run.readings["gpu/0/temperature_celsius"] = readings(40, 60);
  run.readings["gpu/0/throttle_thermal_s"] = readings(3, 3);
  run.readings["gpu/0/foreign_process_count"] = readings(0, 0);
  run.readings["gpu/0/memory_used_bytes"] = readings(1e9, 2e9);
  run.readings["gpu/0/sm_active_ratio"] = readings(0.4, 0.8);
  return run;
}

Judgement verdict(const MeasuredRun& run, const ValidityRules& rules = {}, const ControlSightings& controls = {},
                  std::optional<double> block = {}) {
  return judge(rules, {run}, controls, block);
}

void expect_invalid(const Judgement& judgement, const char* reason) {
  EXPECT_EQ(judgement.verdict, Verdict::invalid);
  EXPECT_THAT(judgement.reasons, ElementsAre(HasSubstr(reason)));
}

TEST(Validity, AGoodRunIsValid) {
  const auto judgement = verdict(good_run());
  EXPECT_EQ(judgement.verdict, Verdict::valid);
  EXPECT_THAT(judgement.reasons, IsEmpty());
  EXPECT_EQ(judgement.start_celsius, 40);
}

TEST(Validity, AnEnforcedLimitThatDiffers) {
  ControlSightings seen;
  seen.before.push_back({"gpu/0/power", Watts(300), ControlValue(Watts(250)), false});
  expect_invalid(verdict(good_run(), {}, seen), "gpu/0/power: 300 W asked, 250 W enforced");
}

TEST(Validity, AClockBelowItsLock) {
  ControlSightings seen;
  seen.under_load.push_back({"gpu/0/clock", Hertz(1.2e9), ControlValue(Hertz(1.005e9)), false});
  expect_invalid(verdict(good_run(), {}, seen), "gpu/0/clock: 1200 MHz asked, 1005 MHz seen");
}

TEST(Validity, ASettingThatChangedMeanwhile) {
  ControlSightings seen;
  seen.changed.push_back("gpu/0/power is 200 W after the run: somebody else changed it from 250 W");
  expect_invalid(verdict(good_run(), {}, seen), "somebody else");
}

TEST(Validity, ThrottlingForLong) {
  auto run = good_run();
  run.readings["gpu/0/throttle_thermal_s"] = readings(3, 4);
  expect_invalid(verdict(run), "gpu/0 was slowed down by heat for 1 s (10 % of the run)");
  run.readings["gpu/0/throttle_thermal_s"] = readings(3, 3.1);
  const auto shortly = verdict(run);
  EXPECT_EQ(shortly.verdict, Verdict::valid);
  EXPECT_THAT(shortly.reasons, ElementsAre(HasSubstr("0.1 s")));
}

TEST(Validity, APowerCapThrottlesOnPurpose) {
  auto run = good_run();
  run.readings["gpu/0/throttle_power_cap_s"] = readings(0, 9);
  EXPECT_EQ(verdict(run).verdict, Verdict::valid);
}

TEST(Validity, ForeignProcesses) {
  auto run = good_run();
  run.readings["gpu/0/foreign_process_count"] = readings(0, 2);
  expect_invalid(verdict(run), "gpu/0: up to 2 processes of others used it");
  ValidityRules rules;
  rules.foreign_processes = true;
  EXPECT_EQ(verdict(run, rules).verdict, Verdict::valid);
}

TEST(Validity, GpusThatTheCommandCannotUseDoNotCount) {
  auto run = good_run();
  run.readings["gpu/1/foreign_process_count"] = readings(1, 1);
  run.readings["gpu/1/memory_used_bytes"] = readings(9e9, 9e9);
  EXPECT_EQ(verdict(run).verdict, Verdict::valid);
  EXPECT_DOUBLE_EQ(metrics_of(run).at("gpu_memory_used_bytes").value, 2e9);
}

TEST(Validity, AStartTemperatureOutsideTheRange) {
  ValidityRules rules;
  rules.lowest_start_celsius = 45;
  rules.highest_start_celsius = 60;
  expect_invalid(verdict(good_run(), rules), "began at 40 degrees Celsius, outside 45 to 60");
  ValidityRules spread;
  spread.start_spread_celsius = 5;
  expect_invalid(verdict(good_run(), spread, {}, 48), "the block at 48");
  EXPECT_EQ(verdict(good_run(), spread, {}, 43).verdict, Verdict::valid);
}

TEST(Validity, Coverage) {
  auto run = good_run();
  run.summary.nodes.front().domains.front().coverage = 0.9;
  expect_invalid(verdict(run), "readings of gpu/0 cover 90 % of the run");
}

TEST(Validity, TooFewReadings) {
  auto run = good_run();
  run.readings["gpu/0/power_w"].count = 1;
  expect_invalid(verdict(run), "gpu/0 has 1 readings, fewer than 2");
}

TEST(Validity, ADeviceWithoutEnergy) {
  auto run = good_run();
  run.summary.nodes.front().domains.front().energy_j.reset();
  run.summary.nodes.front().domains.front().note = "lost";
  expect_invalid(verdict(run), "gpu/0 has no energy: lost");
}

// --- metrics --------------------------------------------------------------------------------------------------------

RegionEnergy epoch(int index, double duration, std::int64_t count = 1) {
  RegionEnergy region;
  region.path = "train/epoch[" + std::to_string(index) + "]";
  region.name = "epoch";
  region.count = count;
  region.duration_s = duration * static_cast<double>(count);
  region.energy_j = 200 * region.duration_s;
  region.uncertainty_j = region.duration_s;
  DomainEnergy gpu;
  gpu.domain = "gpu/0";
  gpu.scope = Scope::gpu;
  gpu.method = Method::samples;
  gpu.energy_j = region.energy_j;
  gpu.alternatives.push_back({Method::counter, *region.energy_j + 10 * static_cast<double>(count), {}, {}});
  region.domains = {gpu};
  region.metrics = {{"samples", 400.0}, {"loss", 1.0 / index}};
  return region;
}

TEST(Metrics, AnEpochHasThreeEnergiesSideBySide) {
  auto run = good_run();
  run.summary.regions = {epoch(1, 4), epoch(2, 6)};
  const auto metrics = metrics_of(run);
  EXPECT_DOUBLE_EQ(metrics.at("seconds_per_epoch").value, 5);
  EXPECT_DOUBLE_EQ(metrics.at("energy_per_epoch_j").value, 1000);
  EXPECT_DOUBLE_EQ(*metrics.at("energy_per_epoch_j").uncertainty, 5);
  EXPECT_DOUBLE_EQ(metrics.at("integral_energy_per_epoch_j").value, 1000);
  EXPECT_DOUBLE_EQ(metrics.at("counter_energy_per_epoch_j").value, 1010);
  EXPECT_DOUBLE_EQ(metrics.at("product_energy_per_epoch_j").value, 5 * 198);  // the readings' mean, not the energy's
  EXPECT_DOUBLE_EQ(metrics.at("samples_per_s").value, 80);
  EXPECT_DOUBLE_EQ(metrics.at("energy_per_sample_j").value, 2.5);
  EXPECT_DOUBLE_EQ(metrics.at("loss").value, 0.5);
  EXPECT_DOUBLE_EQ(metrics.at("gpu_memory_used_bytes").value, 2e9);
  EXPECT_DOUBLE_EQ(metrics.at("sm_active_ratio").value, 0.6);
  EXPECT_FALSE(metrics.contains("accuracy"));
}

TEST(Metrics, AnEpochOfSeveralRanksIsOneEpoch) {
  auto run = good_run();
  run.summary.regions = {epoch(1, 4, 2)};
  const auto metrics = metrics_of(run);
  EXPECT_DOUBLE_EQ(metrics.at("seconds_per_epoch").value, 4);
  EXPECT_DOUBLE_EQ(metrics.at("energy_per_epoch_j").value, 800);
  EXPECT_DOUBLE_EQ(metrics.at("counter_energy_per_epoch_j").value, 810);
  EXPECT_DOUBLE_EQ(metrics.at("energy_per_sample_j").value, 2);
}

TEST(Metrics, WhatIsNotKnownIsNotThere) {
  EXPECT_THAT(metrics_of(MeasuredRun{}), IsEmpty());
}

TEST(Metrics, NodesAddTheirEnergyAndKeepTheSlowestTime) {
  auto slow = good_run();
  slow.summary.run.duration_s = 12;
  const auto metrics = metrics_of_nodes({good_run(), slow});
  EXPECT_DOUBLE_EQ(metrics.at("energy_j").value, 4000);
  EXPECT_DOUBLE_EQ(*metrics.at("energy_j").uncertainty, 20);
  EXPECT_DOUBLE_EQ(metrics.at("duration_s").value, 12);
  auto blind = good_run();
  blind.summary.run.energy_j.reset();
  EXPECT_FALSE(metrics_of_nodes({good_run(), blind}).contains("energy_j"));
}

}  // namespace
}  // namespace ergometer
