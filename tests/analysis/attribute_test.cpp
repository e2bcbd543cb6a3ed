// The command's part of shared devices: bounds and estimates, and that nothing is made up.
#include "analysis/attribute.hpp"

#include <gmock/gmock.h>

#include "analysis/build_run.hpp"

namespace ergometer::test {
namespace {

// 1000 J of which 400 J would have been drawn idle.
constexpr DeviceEnergy kKnownIdle{1000, 400};
constexpr DeviceEnergy kUnknownIdle{1000, std::nullopt};

TEST(Attribute, PartsOfAWhole) {
  const auto part = part_of(30, 10, 0);
  EXPECT_DOUBLE_EQ(part.estimate.value(), 0.75);
  EXPECT_DOUBLE_EQ(part.lower, 0.75);
  EXPECT_DOUBLE_EQ(part.upper, 0.75);
  const auto open = part_of(30, 10, 20);
  EXPECT_FALSE(open.estimate) << "what nobody can tell is not guessed";
  EXPECT_DOUBLE_EQ(open.lower, 0.5);
  EXPECT_DOUBLE_EQ(open.upper, 50.0 / 60);
  const auto nothing = part_of(0, 0, 0);
  EXPECT_FALSE(nothing.estimate);
  EXPECT_EQ(nothing.lower, 0);
  EXPECT_EQ(nothing.upper, 1);
  EXPECT_EQ(part_of(-1, 5, -2).estimate, 0.0);
}

TEST(Attribute, ActivityWithKnownIdlePower) {
  const auto a = attribute_by_activity(kKnownIdle, part_of(0.25, 0.75, 0));
  EXPECT_DOUBLE_EQ(a.energy_j.value(), 250);
  EXPECT_DOUBLE_EQ(a.lower_j, 0.25 * 600) << "none of the idle power";
  EXPECT_DOUBLE_EQ(a.upper_j, 400 + 0.25 * 600) << "all of the idle power";
}

TEST(Attribute, ActivityWithoutIdlePower) {
  const auto a = attribute_by_activity(kUnknownIdle, part_of(0.25, 0.75, 0));
  EXPECT_DOUBLE_EQ(a.energy_j.value(), 250);
  EXPECT_DOUBLE_EQ(a.lower_j, 0);
  EXPECT_DOUBLE_EQ(a.upper_j, 1000);
}

TEST(Attribute, EstimateLiesWithinTheBounds) {
  for (double own = 0; own <= 1; own += 0.25)
    for (const double idle : {0.0, 300.0, 1000.0, 5000.0}) {
      const auto a = attribute_by_activity({1000, idle}, part_of(own, 1 - own, 0));
      EXPECT_LE(a.lower_j, *a.energy_j + 1e-9);
      EXPECT_GE(a.upper_j, *a.energy_j - 1e-9);
      EXPECT_GE(a.lower_j, 0);
      EXPECT_LE(a.upper_j, 1000 + 1e-9);
    }
}

TEST(Attribute, SlicesShareIdleBySizeAndActiveByActivity) {
  // The command has 2 of 7 parts and does 1/4 of the work by multiprocessors, 1/2 by memory.
  const std::vector<SliceUse> slices{{28, 1, 0.5, 0.4}, {28, 0, 1.0, 0.3}, {42, 0, 1.0 / 3, 0.1 / 1.5}};
  const auto a = attribute_slices(kKnownIdle, slices);
  const double idle = 400.0 * 28 / 98, work = 28 * 0.5 + 28 + 14, memory = 28 * 0.4 + 28 * 0.3 + 42 * 0.1 / 1.5;
  EXPECT_DOUBLE_EQ(a.energy_j.value(), idle + 600 * 14 / work);
  EXPECT_DOUBLE_EQ(a.lower_j, idle + 600 * 14 / work);
  EXPECT_DOUBLE_EQ(a.upper_j, idle + 600 * 28 * 0.4 / memory);
}

TEST(Attribute, SlicesWithoutActivityHaveBoundsOnly) {
  const std::vector<SliceUse> slices{{14, 1, std::nullopt, std::nullopt}, {84, 0, 0.5, 0.5}};
  const auto known = attribute_slices(kKnownIdle, slices);
  EXPECT_FALSE(known.energy_j);
  EXPECT_DOUBLE_EQ(known.lower_j, 400.0 * 14 / 98);
  EXPECT_DOUBLE_EQ(known.upper_j, 400.0 * 14 / 98 + 600);
  const std::vector<SliceUse> active{{14, 1, 0.5, std::nullopt}, {84, 0, 0.5, std::nullopt}};
  const auto unknown = attribute_slices(kUnknownIdle, active);
  EXPECT_DOUBLE_EQ(unknown.lower_j, 1000.0 / 7);
  EXPECT_DOUBLE_EQ(unknown.upper_j, 1000.0 / 7);
}

TEST(Attribute, SliceThatIsNotKnownIsAnything) {
  const std::vector<SliceUse> slices{{14, 0, 0.5, 0.5}, {84, 0, 0.5, 0.5}};
  const auto a = attribute_slices(kKnownIdle, slices);
  EXPECT_FALSE(a.energy_j);
  EXPECT_EQ(a.lower_j, 0);
  EXPECT_EQ(a.upper_j, 1000);
  EXPECT_EQ(attribute_slices(kKnownIdle, {}).upper_j, 1000);
}

TEST(Attribute, PartOfAnInstanceIsBetweenNothingAndAll) {
  const std::vector<SliceUse> slices{{40, 0.5, 0.5, std::nullopt}, {40, 0, 0.5, std::nullopt}};
  const auto a = attribute_slices(kKnownIdle, slices);
  EXPECT_DOUBLE_EQ(a.energy_j.value(), 100 + 150);
  EXPECT_DOUBLE_EQ(a.lower_j, 100);
  EXPECT_DOUBLE_EQ(a.upper_j, 100 + 300);
}

// --- Whole runs ----------------------------------------------------------------------------------------------------

Trace level(const std::string& sensor, const std::string& column, const std::string& domain, double value) {
  const Quantity quantity = column.ends_with("count") ? Quantity::count : Quantity::ratio;
  return trace(sensor, gauge(column, quantity, domain, Scope::gpu), constant(value, -10, 10));
}

Trace cpu_seconds(const std::string& domain, double per_second) {
  Channel c = gauge("cpu_s", Quantity::duration, domain, domain == "tree" ? Scope::tree : Scope::system);
  c.behaviour = Behaviour::counter;
  return trace(domain, c, readings_of([=](double t) { return per_second * (t + 10); }, -10, 10, 1));
}

Node one_gpu() {
  Node node;
  node.name = "host";
  node.gpus.resize(1);
  node.gpus[0].uuid = "GPU-0";
  return node;
}

// 100 W in the command's 10 s, 40 W in the 5 s before.
std::vector<Trace> gpu_at_100_w() {
  return {trace("gpu0", power("gpu/0", Scope::gpu),
                readings_of([](double t) { return t < 0 ? 40.0 : 100.0; }, -10, 10, 0.1), 0.1)};
}

Manifest with_idle() {
  auto m = run_of(0, 10);
  m.idle_before = Interval{at(-6), at(-1)};
  return m;
}

void add_processes(std::vector<Trace>& traces, double tree, double foreign, double unattributed) {
  traces.push_back(level("a", "tree_process_count", "gpu/0", tree));
  traces.push_back(level("b", "foreign_process_count", "gpu/0", foreign));
  traces.push_back(level("c", "unattributed_process_count", "gpu/0", unattributed));
}

void add_activity(std::vector<Trace>& traces, const std::string& infix, double all, double tree, double foreign) {
  traces.push_back(level("d" + infix, "process_" + infix + "active_ratio", "gpu/0", all));
  traces.push_back(level("e" + infix, "tree_" + infix + "active_ratio", "gpu/0", tree));
  traces.push_back(level("f" + infix, "foreign_" + infix + "active_ratio", "gpu/0", foreign));
}

TEST(Attribute, SharedGpuBySmShareAndMemoryActivity) {
  auto traces = gpu_at_100_w();
  add_processes(traces, 1, 1, 0);
  add_activity(traces, "", 0.8, 0.6, 0.2);
  add_activity(traces, "memory_", 0.4, 0.1, 0.3);
  const auto s = summarise(with_idle(), traces, {}, one_gpu());
  ASSERT_EQ(s.nodes[0].attributions.size(), 2u);
  const auto& sm = s.nodes[0].attributions[0];
  EXPECT_EQ(sm.domain, "gpu/0");
  EXPECT_EQ(sm.method, "sm_share");
  EXPECT_EQ(sm.sharing, Sharing::shared);
  EXPECT_NEAR(sm.energy_j.value(), 750, 1);
  EXPECT_NEAR(sm.lower_j, 450, 2);
  EXPECT_NEAR(sm.upper_j, 850, 2);
  const auto& memory = s.nodes[0].attributions[1];
  EXPECT_EQ(memory.method, "memory_activity");
  EXPECT_NEAR(memory.energy_j.value(), 250, 1);
  EXPECT_NEAR(s.run.energy_j.value(), 1000, 1) << "an attribution changes no total";
}

TEST(Attribute, GpuToItselfHasNoAttribution) {
  auto traces = gpu_at_100_w();
  add_processes(traces, 2, 0, 0);
  add_activity(traces, "", 0.8, 0.8, 0);
  EXPECT_TRUE(summarise(with_idle(), traces, {}, one_gpu()).nodes[0].attributions.empty());
}

TEST(Attribute, F86_UnattributedProcessesGiveBoundsFromNothingToAll) {
  auto traces = gpu_at_100_w();
  add_processes(traces, 0, 0, 1);
  add_activity(traces, "", 0.8, 0, 0);
  const auto s = summarise(run_of(0, 10), traces, {}, one_gpu());
  ASSERT_EQ(s.nodes[0].attributions.size(), 1u);
  const auto& a = s.nodes[0].attributions[0];
  EXPECT_EQ(a.sharing, Sharing::unknown) << "neither alone nor shared";
  EXPECT_FALSE(a.energy_j) << "not invented";
  EXPECT_NEAR(a.lower_j, 0, 1e-9);
  EXPECT_NEAR(a.upper_j, 1000, 1);
  EXPECT_FALSE(a.note.empty());
  EXPECT_NEAR(s.run.energy_j.value(), 1000, 1);
}

TEST(Attribute, DriverThatTellsNoUtilisation) {
  auto traces = gpu_at_100_w();
  add_processes(traces, 1, 1, 0);
  const auto s = summarise(with_idle(), traces, {}, one_gpu());
  ASSERT_EQ(s.nodes[0].attributions.size(), 1u);
  EXPECT_FALSE(s.nodes[0].attributions[0].energy_j);
  EXPECT_EQ(s.nodes[0].attributions[0].sharing, Sharing::shared);
}

Node sliced_gpu() {
  auto node = one_gpu();
  node.gpus[0].mig = true;
  node.gpus[0].slices = {{"MIG-a", 1, 0, 14, {}, true}, {"MIG-b", 2, 0, 84, {}, false}};
  return node;
}

TEST(Attribute, F43_SlicesAreAnEstimateWithItsOwnName) {
  auto traces = gpu_at_100_w();
  traces.push_back(level("m1", "mig1_sm_active_ratio", "gpu/0", 1.0));
  traces.push_back(level("m2", "mig2_sm_active_ratio", "gpu/0", 0.5));
  const auto s = summarise(with_idle(), traces, {}, sliced_gpu());
  ASSERT_EQ(s.nodes[0].attributions.size(), 1u);
  const auto& a = s.nodes[0].attributions[0];
  EXPECT_EQ(a.method, "mig_slices");
  EXPECT_NEAR(a.energy_j.value(), 400.0 / 7 + 600.0 * 14 / 56, 2);
  EXPECT_NEAR(s.run.energy_j.value(), 1000, 1) << "once per physical GPU";
  EXPECT_EQ(s.nodes[0].domains.size(), 1u);
}

TEST(Attribute, F41_SliceWithoutSizesHasNoExactValue) {
  auto node = sliced_gpu();
  for (auto& slice : node.gpus[0].slices) slice.multiprocessors.reset();
  const auto s = summarise(with_idle(), gpu_at_100_w(), {}, node);
  const auto& a = s.nodes[0].attributions.at(0);
  EXPECT_FALSE(a.energy_j);
  EXPECT_NEAR(a.lower_j, 0, 1e-9);
  EXPECT_NEAR(a.upper_j, 1000, 1);
  EXPECT_THAT(a.note, testing::HasSubstr("sizes"));
}

TEST(Attribute, F44_MissingActivityIsNotZero) {
  auto traces = gpu_at_100_w();
  traces.push_back(level("m2", "mig2_sm_active_ratio", "gpu/0", 0.5));
  const auto s = summarise(with_idle(), traces, {}, sliced_gpu());
  const auto& a = s.nodes[0].attributions.at(0);
  EXPECT_FALSE(a.energy_j);
  EXPECT_GT(a.upper_j, a.lower_j + 100);
}

TEST(Attribute, PackagesByCpuTime) {
  std::vector<Trace> traces{trace("rapl", counter("package/0", Scope::package),
                                  readings_of([](double t) { return 100 * (t + 10); }, -10, 10, 1)),
                            cpu_seconds("tree", 3), cpu_seconds("system", 4)};
  const auto s = summarise(run_of(0, 10), traces);
  ASSERT_EQ(s.nodes[0].attributions.size(), 1u);
  const auto& a = s.nodes[0].attributions[0];
  EXPECT_EQ(a.domain, "package/0");
  EXPECT_EQ(a.method, "cpu_time");
  EXPECT_NEAR(a.energy_j.value(), 750, 1e-6);
  EXPECT_EQ(a.sharing, Sharing::shared) << "others used a quarter";
  traces[2] = cpu_seconds("system", 3.05);
  EXPECT_EQ(summarise(run_of(0, 10), traces).nodes[0].attributions[0].sharing, Sharing::alone);
  traces[2] = cpu_seconds("system", 2);
  EXPECT_NEAR(summarise(run_of(0, 10), traces).nodes[0].attributions[0].energy_j.value(), 1000, 1e-6);
}

TEST(Attribute, SeveralPackagesTogether) {
  std::vector<Trace> traces;
  for (const char* name : {"package/0", "package/1"})
    traces.push_back(trace(std::string("rapl-") + name[8], counter(name, Scope::package),
                           readings_of([](double t) { return 50 * (t + 10); }, -10, 10, 1)));
  traces.push_back(cpu_seconds("tree", 1));
  traces.push_back(cpu_seconds("system", 2));
  const auto s = summarise(run_of(0, 10), traces);
  ASSERT_EQ(s.nodes[0].attributions.size(), 1u);
  EXPECT_EQ(s.nodes[0].attributions[0].domain, "packages");
  EXPECT_NEAR(s.nodes[0].attributions[0].energy_j.value(), 500, 1e-6);
}

TEST(Attribute, NothingMeasuredNothingSharedOut) {
  EXPECT_TRUE(
      summarise(run_of(0, 10), {cpu_seconds("tree", 1), cpu_seconds("system", 2)}).nodes[0].attributions.empty());
}

}  // namespace
}  // namespace ergometer::test
