// The account of a whole node, its baselines with their drift, and "time times power" beside the measurement.
#include <gmock/gmock.h>

#include <cmath>

#include "analysis/account.hpp"
#include "analysis/baseline.hpp"
#include "analysis/build_run.hpp"

namespace ergometer::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

Trace steady(const std::string& name, Scope scope, double watts, double tolerance = 0) {
  Channel c = power(name, scope);
  c.gain_tolerance = tolerance;
  return trace(name + "-power", c, constant(watts, -10, 20));
}

Trace share(const std::string& gpu, const std::string& column, double value) {
  return trace(gpu + column, gauge(column, Quantity::ratio, gpu, Scope::gpu), constant(value, -10, 20));
}

Node gpus(int count) {
  Node node;
  node.name = "host";
  for (int i = 0; i < count; ++i) {
    GpuInfo gpu;
    gpu.index = i;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.default_power_limit_w = 500;
    node.gpus.push_back(gpu);
  }
  return node;
}

const NodePart& part(const Summary& s, const std::string& domain) {
  for (const auto& p : s.nodes.at(0).account.value().parts)
    if (p.domain == domain) return p;
  static const NodePart none;
  ADD_FAILURE() << "no part " << domain;
  return none;
}

TEST(Account, NodeMeterPartsAndRest) {
  const auto s =
      summarise(run_of(0, 10), {steady("node", Scope::node, 600, 0.05), steady("gpu/0", Scope::gpu, 300, 0.04),
                                steady("package/0", Scope::package, 100, 0.03)});
  const auto& a = s.nodes[0].account.value();
  EXPECT_TRUE(a.metered);
  EXPECT_NEAR(a.energy_j.value(), 6000, 1e-6);
  EXPECT_NEAR(a.rest_j.value(), 2000, 1e-6);
  EXPECT_NEAR(a.rest_uncertainty_j.value(), std::sqrt(300.0 * 300 + 120 * 120 + 30 * 30), 1);
  EXPECT_NEAR(part(s, "gpu/0").share.value(), 0.5, 1e-9);
  EXPECT_EQ(part(s, "node").role, PartRole::meter);
  EXPECT_FALSE(part(s, "node").share.has_value()) << "it is the whole";
  EXPECT_EQ(part(s, "package/0").sensor, "package/0-power");
}

TEST(Account, WithoutANodeMeterWhatNobodyMeasuresIsNamed) {
  Node node = gpus(2);
  node.components = {{"fan", "a fan1", ""}, {"fan", "a fan2", ""}, {"nic", "eth0", ""}, {"battery", "b", ""}};
  const auto s = summarise(run_of(0, 10), {steady("gpu/0", Scope::gpu, 300)}, {}, node);
  const auto& a = s.nodes[0].account.value();
  EXPECT_FALSE(a.metered);
  EXPECT_FALSE(a.rest_j.has_value());
  EXPECT_NEAR(a.energy_j.value(), 3000, 1e-6);
  EXPECT_THAT(a.unmeasured, testing::ElementsAre("processors", "dram", "gpu/1", "2 fans", "1 network interface",
                                                 "mainboard and losses of the power supply"));
  const auto whole =
      summarise(run_of(0, 10), {steady("package/0", Scope::package, 300), steady("dram/0", Scope::dram, 9)});
  EXPECT_THAT(whole.nodes[0].account.value().unmeasured,
              testing::ElementsAre("mainboard and losses of the power supply"));
}

TEST(Account, GpusThatDidNothingHaveTheirOwnLine) {
  Node node = gpus(3);
  node.gpus[2].visible = false;  // another user's, and busy
  const auto s = summarise(
      run_of(0, 10),
      {steady("gpu/0", Scope::gpu, 300), share("gpu/0", "gpu_active_ratio", 0.9), steady("gpu/1", Scope::gpu, 70, 0.1),
       share("gpu/1", "gpu_active_ratio", 0), share("gpu/1", "process_count", 1), steady("gpu/2", Scope::gpu, 330),
       share("gpu/2", "gpu_active_ratio", 0.5)},
      {}, node);
  const auto& a = s.nodes[0].account.value();
  EXPECT_EQ(part(s, "gpu/0").role, PartRole::part);
  EXPECT_EQ(part(s, "gpu/1").role, PartRole::idle_gpu);
  EXPECT_EQ(part(s, "gpu/1").note, "1 compute process");
  EXPECT_EQ(part(s, "gpu/2").role, PartRole::part);
  EXPECT_EQ(a.idle_gpus, 1u);
  EXPECT_NEAR(a.idle_gpu_j.value(), 700, 1e-6);
  EXPECT_NEAR(a.idle_gpu_uncertainty_j.value(), 70, 0.1);
  EXPECT_NEAR(a.idle_gpu_share.value(), 0.1, 1e-9);
  // Where no driver tells the activity, no process is needed to know that nothing ran.
  const auto quiet =
      summarise(run_of(0, 10), {steady("gpu/0", Scope::gpu, 70), share("gpu/0", "process_count", 0)}, {}, gpus(1));
  EXPECT_EQ(part(quiet, "gpu/0").role, PartRole::idle_gpu);
  EXPECT_EQ(part(quiet, "gpu/0").note, "no CUDA context");
  const auto unknown = summarise(run_of(0, 10), {steady("gpu/0", Scope::gpu, 70)}, {}, gpus(1));
  EXPECT_EQ(part(unknown, "gpu/0").role, PartRole::part) << "nobody knows what it did";
}

Manifest with_idle() {
  Manifest m = run_of(10, 20);
  m.idle_before = Interval{at(0), at(5)};
  m.idle_after = Interval{at(25), at(30)};
  return m;
}

Trace stairs(double before, double load, double after, double tolerance = 0) {
  Channel c = power("gpu/0", Scope::gpu, Method::samples);
  c.window = std::chrono::milliseconds(20);
  c.sampled_share = 1;
  c.gain_tolerance = tolerance;
  const auto p = [=](double t) { return t < 8 ? before : (t < 22 ? load : after); };
  return trace("gpu0", c, readings_of(p, -1, 31, 0.02), 0.5, true);
}

TEST(Baseline, DriftIsToldAndInTheNetUncertainty) {
  Node node = gpus(1);
  const auto context = trace("slow", gauge("process_count", Quantity::count, "gpu/0", Scope::gpu),
                             readings_of([](double t) { return t < 8 ? 0.0 : 1.0; }, -1, 31, 1));
  const auto s = summarise(with_idle(), {stairs(78, 300, 118, 0.05), context}, {region("a", 12, 14)}, node);
  ASSERT_EQ(s.nodes[0].baselines.size(), 1u);
  const auto& b = s.nodes[0].baselines[0];
  EXPECT_NEAR(b.before_w.value(), 78, 1e-6);
  EXPECT_EQ(b.before, "no CUDA context");
  EXPECT_NEAR(b.after_w.value(), 118, 1e-6);
  EXPECT_EQ(b.after, "1 compute process");
  EXPECT_NEAR(b.drift_w.value(), 40, 1e-6);
  EXPECT_NEAR(b.drift_uncertainty_w.value(), 0.05 * 40, 0.1) << "the gain acts on the difference";
  EXPECT_NEAR(s.run.net_energy_j.value(), 3000 - 980, 1e-6);
  EXPECT_NEAR(s.run.net_uncertainty_j.value(), std::hypot(0.05 * 2020, 10 * 20.0), 1);
  EXPECT_NEAR(s.regions[0].net_uncertainty_j.value(), std::hypot(0.05 * 404, 2 * 20.0), 1);
  EXPECT_THAT(warning_text(s, "baseline-drift"), HasSubstr("78 W (no CUDA context) before the command and at 118 W"));
  const auto& p = part(s, "gpu/0");
  EXPECT_NEAR(p.idle_j.value(), 980, 1e-6);
  EXPECT_NEAR(p.net_j.value(), 2020, 1e-6);
  EXPECT_NEAR(p.net_uncertainty_j.value(), s.run.net_uncertainty_j.value(), 1e-9);
}

TEST(Baseline, OneBaselineHasNoDrift) {
  Manifest m = with_idle();
  m.idle_after.reset();
  const auto s = summarise(m, {stairs(78, 300, 118)});
  const auto& b = s.nodes[0].baselines.at(0);
  EXPECT_NEAR(b.idle_w, 78, 1e-6);
  EXPECT_FALSE(b.after_w.has_value());
  EXPECT_FALSE(b.drift_w.has_value());
  EXPECT_EQ(b.before, "") << "nobody told the processes";
  EXPECT_EQ(count_warnings(s, "baseline-drift"), 0u);
  EXPECT_EQ(count_warnings(summarise(with_idle(), {stairs(78, 300, 79)}), "baseline-drift"), 0u);
}

TEST(Baseline, WordsForProcesses) {
  const Node node = gpus(1);
  EXPECT_EQ(context_of(node, "gpu/0", 2.0), "2 compute processes");
  EXPECT_EQ(context_of(node, "gpu/0", 0.5), "0.5 compute processes on average");
  EXPECT_EQ(context_of(node, "gpu/0", {}), "");
  EXPECT_EQ(context_of(node, "package/0", 0.0), "");
}

TEST(Shortcuts, TimeTimesPowerIsNoMeasurement) {
  // 400 W for 2 s of 10, else 100 W: 1600 J; TDP 500 W.
  const auto p = [](double t) { return t >= 4 && t < 6 ? 400.0 : 100.0; };
  Channel package = counter("package/0", Scope::package);
  package.max_power_w = 200;
  const auto s = summarise(run_of(0, 10),
                           {trace("gpu0", power("gpu/0", Scope::gpu), readings_of(p, -0.95, 10.95, 0.1), 0.1),
                            trace("rapl", package, readings_of([](double t) { return 50 * t + 100; }, 0, 10, 1)),
                            steady("dram/0", Scope::dram, 10)},
                           {region("train", 4, 6), region("wait", 7, 9)}, gpus(1));
  EXPECT_NEAR(part(s, "gpu/0").shortcuts.tdp_j.value(), 5000, 1e-6);
  EXPECT_NEAR(part(s, "gpu/0").mean_power_w.value(), 160, 3);
  EXPECT_NEAR(part(s, "package/0").shortcuts.tdp_j.value(), 2000, 1e-6);
  EXPECT_NEAR(part(s, "package/0").mean_power_w.value(), 50, 1e-6);
  EXPECT_NEAR(s.run.shortcuts.tdp_j.value(), 7000, 1e-6) << "memory has no TDP";
  EXPECT_NEAR(s.regions[0].energy_j.value(), 920, 10);
  EXPECT_NEAR(s.regions[0].shortcuts.mean_power_j.value(), 440, 10) << "the run's mean power times its 2 s";
  EXPECT_NEAR(s.regions[0].shortcuts.tdp_j.value(), 1400, 1e-6);
  Node limitless = gpus(1);
  limitless.gpus[0].default_power_limit_w.reset();
  const auto without = summarise(run_of(0, 10), {steady("gpu/0", Scope::gpu, 100)}, {}, limitless);
  EXPECT_FALSE(without.run.shortcuts.tdp_j.has_value());
  EXPECT_NEAR(without.run.shortcuts.mean_power_j.value(), 1000, 1e-6);
}

}  // namespace
}  // namespace ergometer::test
