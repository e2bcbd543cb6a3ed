// Which domains make up a total, partial totals, idle power, metrics, warnings.
#include <gmock/gmock.h>

#include "analysis/build_run.hpp"

namespace ergometer::test {
namespace {

using testing::HasSubstr;

Trace meter(std::string name, Scope scope, double watts, double end = 1) {
  Channel c = counter(name, scope);
  return trace(name + "-energy", c, {{0, 1000.0}, {end, 1000.0 + watts * end}}, end);
}

Node node_with_gpus(int count) {
  Node node;
  node.name = "host";
  for (int i = 0; i < count; ++i) {
    GpuInfo gpu;
    gpu.index = i;
    gpu.uuid = "GPU-" + std::to_string(i);
    node.gpus.push_back(gpu);
  }
  return node;
}

TEST(Totals, F29_PsysCoreAndUncoreAreNotAdded) {
  const auto s = summarise(run_of(0, 1), {meter("psys/0", Scope::psys, 9.61), meter("package/0", Scope::package, 3.78),
                                          meter("core/0", Scope::core, 0.84), meter("uncore/0", Scope::uncore, 0.21)});
  EXPECT_NEAR(s.run.energy_j.value(), 3.78, 1e-9);
  EXPECT_NEAR(domain(s, "psys/0").mean_power_w.value(), 9.61, 1e-9);
  EXPECT_FALSE(domain(s, "psys/0").in_total);
  EXPECT_FALSE(domain(s, "core/0").in_total);
  EXPECT_FALSE(domain(s, "uncore/0").in_total);
}

Trace dies(const char* first, const char* second, double grow_first, double grow_second) {
  SensorInfo info;
  info.name = "rapl";
  info.interval = std::chrono::seconds(1);
  info.channels = {counter(first, Scope::package), counter(second, Scope::package)};
  info.channels[1].column = "second_energy_j";
  Trace t = Trace::empty(info);
  t.push(Row{at(0), Nanos{0}, {1000.0, 1000.0}});
  t.push(Row{at(1), Nanos{0}, {1000.0 + grow_first, 1000.0 + grow_second}});
  return t;
}

TEST(Totals, F31_MirroredDiesCountOnce) {
  const auto mirrored = summarise(run_of(0, 1), {dies("package/0/die/0", "package/0/die/1", 68, 68)});
  EXPECT_NEAR(mirrored.run.energy_j.value(), 68.0, 1e-9);
  EXPECT_EQ(domain(mirrored, "package/0/die/1").note, "mirror of package/0/die/0");
  EXPECT_FALSE(mirrored.run.partial);
  const auto separate = summarise(run_of(0, 1), {dies("package/0", "package/1", 68, 61)});
  EXPECT_NEAR(separate.run.energy_j.value(), 129.0, 1e-9);
  // Two sockets may happen to agree.
  EXPECT_NEAR(summarise(run_of(0, 1), {dies("package/0", "package/1", 1, 1)}).run.energy_j.value(), 2.0, 1e-9);
}

TEST(Totals, F32_DramIsBesideItsPackage) {
  const auto s = summarise(run_of(0, 1), {meter("package/0", Scope::package, 100), meter("dram/0", Scope::dram, 20)});
  EXPECT_NEAR(domain(s, "package/0").energy_j.value(), 100.0, 1e-9);
  EXPECT_NEAR(s.run.energy_j.value(), 120.0, 1e-9);
}

TEST(Totals, F18_OneUnsupportedGpuIsNamed) {
  Node node = node_with_gpus(2);
  node.gpus[1].state = "not measurable";
  const auto s = summarise(run_of(0, 1), {meter("gpu/0", Scope::gpu, 500)}, {}, node);
  EXPECT_NEAR(s.run.energy_j.value(), 500.0, 1e-9);
  EXPECT_TRUE(s.run.partial);
  EXPECT_TRUE(s.run.valid);
  EXPECT_EQ(domain(s, "gpu/1").note, "not measurable");
  EXPECT_EQ(domain(s, "gpu/1").device, "GPU-1");
  EXPECT_FALSE(domain(s, "gpu/1").energy_j.has_value());
  EXPECT_THAT(warning_text(s, "partial-total"), HasSubstr("1 of 2 devices; missing: gpu/1 (not measurable)"));
}

TEST(Totals, F45_OneLostGpuDoesNotHideTheOthers) {
  Node node = node_with_gpus(4);
  node.gpus[1].state = "lost";
  std::vector<Trace> traces;
  for (const int i : {0, 2, 3})
    traces.push_back(
        trace("gpu" + std::to_string(i), power("gpu/" + std::to_string(i), Scope::gpu), constant(100, 0, 10)));
  const auto s = summarise(run_of(0, 10), traces, {}, node);
  for (const int i : {0, 2, 3}) EXPECT_NEAR(domain(s, "gpu/" + std::to_string(i)).energy_j.value(), 1000.0, 1e-9);
  EXPECT_NEAR(s.run.energy_j.value(), 3000.0, 1e-9);
  EXPECT_TRUE(s.run.partial);
  EXPECT_THAT(warning_text(s, "partial-total"), HasSubstr("3 of 4 devices; missing: gpu/1 (lost)"));
}

TEST(Totals, F36_OnlyVisibleGpusAreInTheRun) {
  Node node = node_with_gpus(4);
  std::vector<Trace> traces;
  for (int i = 0; i < 4; ++i) {
    node.gpus[i].visible = i == 2;
    traces.push_back(trace("gpu" + std::to_string(i), power("gpu/" + std::to_string(i), Scope::gpu),
                           constant(100 * (i + 1), 0, 10)));
  }
  const auto s = summarise(run_of(0, 10), traces, {}, node);
  EXPECT_NEAR(s.run.energy_j.value(), 3000.0, 1e-9);
  EXPECT_NEAR(s.nodes[0].machine_energy_j.value(), 10000.0, 1e-9);
  EXPECT_FALSE(domain(s, "gpu/0").in_total);
  EXPECT_EQ(domain(s, "gpu/0").note, "not usable by the command");
  EXPECT_FALSE(s.run.partial);
}

TEST(Totals, F43_WholeGpuPowerOnce) {
  Node node = node_with_gpus(1);
  node.gpus[0].mig = true;
  std::vector<Trace> traces;
  for (int i = 0; i < 4; ++i)
    traces.push_back(trace("gpu0-slice" + std::to_string(i), power("gpu/0", Scope::gpu), constant(52.636, 0, 10)));
  const auto s = summarise(run_of(0, 10), traces, {}, node);
  ASSERT_EQ(s.nodes[0].domains.size(), 1u);
  EXPECT_NEAR(s.run.energy_j.value(), 526.36, 1e-9);
  EXPECT_THAT(domain(s, "gpu/0").note, HasSubstr("shared by its MIG slices"));
}

TEST(Totals, ModuleContainsItsGpuAndPackage) {
  const std::vector<Trace> traces{meter("module/0", Scope::module, 600), meter("gpu/0", Scope::gpu, 400),
                                  meter("package/0", Scope::package, 100), meter("gpu/1", Scope::gpu, 50)};
  const auto s = summarise(run_of(0, 1), traces);
  EXPECT_NEAR(s.run.energy_j.value(), 650.0, 1e-9);
  EXPECT_EQ(domain(s, "gpu/0").note, "inside module/0");
  Node node = node_with_gpus(2);
  node.gpus[0].visible = false;
  const auto masked = summarise(run_of(0, 1), traces, {}, node);
  EXPECT_NEAR(masked.run.energy_j.value(), 150.0, 1e-9);
}

TEST(Totals, GraceHopperGpuIsNotAddedToItsModule) {
  // The board's meter and the driver's, both of the same module: recorded, and the GPU inside is counted once.
  std::vector<Trace> traces{meter("module/0", Scope::module, 600), meter("gpu/0", Scope::gpu, 400),
                            meter("package/0", Scope::package, 100)};
  traces[0].info.channels[0].in_total = false;
  const auto s = summarise(run_of(0, 1), traces, {}, node_with_gpus(1));
  EXPECT_NEAR(s.run.energy_j.value(), 500.0, 1e-9);
  EXPECT_FALSE(domain(s, "module/0").in_total);
  EXPECT_NEAR(domain(s, "module/0").energy_j.value(), 600.0, 1e-9) << "shown apart";
}

TEST(Totals, SecondDieOfACardIsNotMissing) {
  Node node = node_with_gpus(2);
  node.gpus[1].state = "part";
  node.gpus[1].note = "no meter of its own";
  const auto s = summarise(run_of(0, 10), {trace("gpu0", power("gpu/0", Scope::gpu), constant(300, 0, 10))}, {}, node);
  EXPECT_NEAR(s.run.energy_j.value(), 3000.0, 1e-9);
  EXPECT_FALSE(s.run.partial) << "its power is inside that of the first";
  EXPECT_FALSE(domain(s, "gpu/1").in_total);
  node.gpus[1].state = "not measurable";
  EXPECT_TRUE(summarise(run_of(0, 10), {trace("gpu0", power("gpu/0", Scope::gpu), constant(300, 0, 10))}, {}, node)
                  .run.partial);
}

TEST(Totals, NodeMeterIsTheTotalOnlyIfItIsAlone) {
  const auto alone = summarise(run_of(0, 1), {meter("node", Scope::node, 300)});
  EXPECT_NEAR(alone.run.energy_j.value(), 300.0, 1e-9);
  EXPECT_TRUE(domain(alone, "node").in_total);
  EXPECT_FALSE(alone.nodes[0].unexplained_j.has_value());
  const auto with_parts = summarise(run_of(0, 1), {meter("node", Scope::node, 300), meter("gpu/0", Scope::gpu, 200)});
  EXPECT_NEAR(with_parts.run.energy_j.value(), 200.0, 1e-9);
  EXPECT_NEAR(with_parts.nodes[0].unexplained_j.value(), 100.0, 1e-9);
}

TEST(Totals, F121_PartsAboveTheNodeMeter) {
  const auto s =
      summarise(run_of(0, 10), {meter("package/0", Scope::package, 70, 10), meter("package/1", Scope::package, 80, 10),
                                trace("ipmi", power("node", Scope::node, Method::average), constant(102, 0, 10))});
  EXPECT_NEAR(s.run.energy_j.value(), 1500.0, 1e-9);
  EXPECT_NEAR(domain(s, "node").mean_power_w.value(), 102.0, 1e-9);
  EXPECT_FALSE(s.nodes[0].unexplained_j.has_value());
  EXPECT_EQ(count_warnings(s, "meters-disagree"), 1u);
}

TEST(Totals, F120_ImplausibleUnitIsFlagged) {
  Channel c = counter("package/0", Scope::package, {}, 6.0);
  c.device = "intel-rapl:0";
  const auto s = summarise(run_of(0, 2), {trace("rapl", c, {{0, 0.0}, {1, 4500.0}, {2, 9000.0}})});
  EXPECT_NEAR(domain(s, "package/0").mean_power_w.value(), 4500.0, 1e-9);
  EXPECT_FALSE(domain(s, "package/0").in_total);
  EXPECT_FALSE(s.run.energy_j.has_value());
  EXPECT_THAT(warning_text(s, "implausible-power"), HasSubstr("package/0 (intel-rapl:0) reads 4500 W"));
}

TEST(Totals, AModelIsNeverAdded) {
  const auto s = summarise(run_of(0, 10),
                           {trace("model", power("package/0", Scope::package, Method::model), constant(50, 0, 10)),
                            meter("gpu/0", Scope::gpu, 100, 10)},
                           {region("train", 2, 4)});
  EXPECT_NEAR(s.run.energy_j.value(), 1000.0, 1e-9);
  EXPECT_NEAR(s.run.modelled_j.value(), 500.0, 1e-9);
  EXPECT_NEAR(domain(s, "package/0").uncertainty_j.value(), 300.0, 1.0);
  EXPECT_FALSE(domain(s, "package/0").measured);
  EXPECT_FALSE(domain(s, "package/0").in_total);
  EXPECT_NEAR(s.regions[0].energy_j.value(), 200.0, 1e-9);
  EXPECT_NEAR(s.regions[0].modelled_j.value(), 100.0, 1e-9);
  EXPECT_FALSE(s.run.partial);
}

TEST(Totals, AMeasurementBeatsAModelOfTheSameDomain) {
  const auto s =
      summarise(run_of(0, 10), {trace("model", power("package/0", Scope::package, Method::model), constant(50, 0, 10)),
                                meter("package/0", Scope::package, 80, 10)});
  EXPECT_NEAR(s.run.energy_j.value(), 800.0, 1e-9);
  EXPECT_FALSE(s.run.modelled_j.has_value());
}

TEST(Totals, F15_ForbiddenCounterIsToldOnce) {
  Node node = node_with_gpus(1);
  node.absences = {{"rapl-powercap", "package energy", "permission denied: /sys/class/powercap/intel-rapl:0/energy_uj",
                    "run: sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj"}};
  const auto gpu = trace("gpu0", power("gpu/0", Scope::gpu), constant(100, 0.5, 9.5));
  const auto s = summarise(run_of(0, 10), {gpu}, {}, node);
  EXPECT_NEAR(s.run.energy_j.value(), 1000.0, 1e-9);
  EXPECT_FALSE(domain(s, "package").energy_j.has_value());
  EXPECT_THAT(domain(s, "package").note, HasSubstr("permission denied"));
  EXPECT_EQ(count_warnings(s, "sensor-missing"), 1u);
  Manifest told = run_of(0, 10);
  told.warnings = {{"sensor-missing", "package energy: " + node.absences[0].reason, node.absences[0].remedy}};
  EXPECT_EQ(count_warnings(summarise(told, {gpu}, {}, node), "sensor-missing"), 1u);
}

TEST(Totals, IndependentDomainsAddInQuadrature) {
  Channel a = counter("package/0", Scope::package), b = counter("package/1", Scope::package);
  a.resolution = 6 * std::sqrt(6.0) / 1.96;  // standard deviation of each edge: resolution / sqrt(12)
  b.resolution = 8 * std::sqrt(6.0) / 1.96;
  const auto s =
      summarise(run_of(0, 10), {trace("a", a, {{0, 0.0}, {10, 100.0}}), trace("b", b, {{0, 0.0}, {10, 100.0}})});
  EXPECT_NEAR(domain(s, "package/0").uncertainty_j.value(), 6.0, 1e-9);
  EXPECT_NEAR(domain(s, "package/1").uncertainty_j.value(), 8.0, 1e-9);
  EXPECT_NEAR(s.run.uncertainty_j.value(), 10.0, 1e-9);
}

TEST(Totals, IdlePowerIsSubtracted) {
  Manifest m = run_of(10, 20);
  m.idle_before = Interval{at(0), at(5)};
  m.idle_after = Interval{at(25), at(30)};
  const auto p = [](double t) { return t < 8 ? 50.0 : (t < 22 ? 150.0 : 70.0); };
  const auto s = summarise(m, {trace("gpu0", power("gpu/0", Scope::gpu), readings_of(p, 0, 30, 0.5), 0.5)},
                           {region("train", 12, 14)});
  EXPECT_NEAR(s.nodes[0].idle_power_w.value(), 60.0, 1e-9);
  EXPECT_NEAR(s.run.net_energy_j.value(), 1500 - 600, 1e-6);
  EXPECT_NEAR(s.regions[0].net_energy_j.value(), 300 - 120, 1e-6);
  const auto without = summarise(run_of(10, 20), {trace("gpu0", power("gpu/0", Scope::gpu), constant(50, 0, 30))});
  EXPECT_FALSE(without.run.net_energy_j.has_value());
}

TEST(Totals, F134_CutEpochIsMarked) {
  std::vector<Region> epochs;
  for (int i = 0; i < 4; ++i) epochs.push_back(region("train/epoch[" + std::to_string(i) + "]", i, i + 1));
  epochs.push_back(region("train/epoch[4]", 4, 4.5));
  epochs.back().cut = true;
  const auto s = summarise(
      run_of(0, 4.5),
      {trace("e", counter("package/0", Scope::package), readings_of([](double t) { return 10 * t; }, 0, 4.5, 0.5))},
      epochs);
  ASSERT_EQ(s.regions.size(), 5u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(s.regions[i].cut);
    EXPECT_NEAR(s.regions[i].energy_j.value(), 10.0, 1e-6);
    EXPECT_EQ(s.regions[i].index, i);
  }
  EXPECT_TRUE(s.regions[4].cut);
  EXPECT_NEAR(s.regions[4].energy_j.value(), 5.0, 1e-6);
}

TEST(Totals, CutRunEndsWithItsReadings) {
  Manifest m;
  m.begin = at(0);
  const auto s = summarise(m, {trace("gpu0", power("gpu/0", Scope::gpu), constant(100, 0, 30))});
  EXPECT_DOUBLE_EQ(s.run.duration_s.value(), 30.0);
  EXPECT_NEAR(s.run.energy_j.value(), 3000.0, 1e-9);
  EXPECT_FALSE(s.run.valid);
  EXPECT_EQ(count_warnings(s, "run-cut"), 1u);
}

TEST(Totals, F125_MeanOverWhatWasReported) {
  std::vector<Trace> traces;
  for (int i = 0; i < 4; ++i) {
    const auto value = i == 1 ? std::optional<double>{} : std::optional<double>{1.0};
    Readings readings;
    for (int t = 0; t <= 60; ++t) readings.push_back({t, value});
    traces.push_back(trace("u" + std::to_string(i),
                           gauge("utilisation_ratio", Quantity::ratio, "gpu/" + std::to_string(i), Scope::gpu),
                           readings));
  }
  const auto s = summarise(run_of(0, 60), traces, {region("train", 10, 50)});
  EXPECT_DOUBLE_EQ(s.regions[0].metrics.at("gpu/0/utilisation_ratio"), 1.0);
  EXPECT_EQ(s.regions[0].metrics.count("gpu/1/utilisation_ratio"), 0u);
}

TEST(Totals, MetricsOfARegion) {
  Channel cpu = gauge("cpu_s", Quantity::duration, "tree", Scope::tree);
  cpu.behaviour = Behaviour::counter;
  const auto s = summarise(run_of(0, 10),
                           {trace("cpu", cpu, readings_of([](double t) { return 3 * t; }, 0, 10, 1)),
                            trace("mem", gauge("resident_bytes", Quantity::bytes, "tree", Scope::tree),
                                  readings_of([](double t) { return 1000 * t; }, 0, 10, 1)),
                            trace("gpu0", power("gpu/0", Scope::gpu), constant(100, 0, 10))},
                           {region("epoch[0]", 2, 4, {{"loss", "0.25"}, {"samples", "50"}, {"host", "abc"}})});
  const auto& m = s.regions[0].metrics;
  EXPECT_NEAR(m.at("tree/cpu_ratio"), 3.0, 1e-9);
  EXPECT_NEAR(m.at("tree/cpu_s"), 6.0, 1e-9);
  EXPECT_NEAR(m.at("tree/resident_bytes"), 3000.0, 1e-6);
  EXPECT_NEAR(m.at("tree/peak_resident_bytes"), 4000.0, 1e-6);
  EXPECT_DOUBLE_EQ(m.at("loss"), 0.25);
  EXPECT_NEAR(m.at("energy_per_sample_j"), 4.0, 1e-9);
  EXPECT_EQ(m.count("host"), 0u);
}

// Memory before and after a short region says nothing of the region; the processor time of a counter does.
TEST(Totals, MemoryOfARegionThatNoReadingSawIsUnknown) {
  Channel cpu = gauge("cpu_s", Quantity::duration, "tree", Scope::tree);
  cpu.behaviour = Behaviour::counter;
  const auto s = summarise(run_of(0, 10),
                           {trace("cpu", cpu, readings_of([](double t) { return 3 * t; }, 0, 10, 1)),
                            trace("mem", gauge("resident_bytes", Quantity::bytes, "tree", Scope::tree),
                                  readings_of([](double t) { return 1000 * t; }, 0, 10, 1))},
                           {region("infer", 2.2, 2.4)});
  const auto& m = s.regions[0].metrics;
  EXPECT_EQ(m.count("tree/resident_bytes"), 0u);
  EXPECT_EQ(m.count("tree/peak_resident_bytes"), 0u);
  EXPECT_NEAR(m.at("tree/cpu_s"), 0.6, 1e-9);
}

TEST(Totals, ManyStepsArePooledByEpoch) {
  std::vector<Region> regions;
  for (int e = 0; e < 2; ++e) {
    const std::string epoch = "train/epoch[" + std::to_string(e) + "]";
    regions.push_back(region(epoch, e * 10, e * 10 + 10));
    for (int i = 0; i < 6000; ++i)
      regions.push_back(region(epoch + "/step[" + std::to_string(i) + "]", e * 10 + i / 600.0, e * 10 + (i + 1) / 600.0,
                               {{"samples", "2"}}));
  }
  const auto s = summarise(run_of(0, 20), {trace("gpu0", power("gpu/0", Scope::gpu), constant(100, 0, 20))}, regions);
  ASSERT_EQ(s.regions.size(), 4u);
  EXPECT_EQ(s.regions[1].path, "train/epoch[0]/step");
  EXPECT_EQ(s.regions[1].count, 6000);
  EXPECT_NEAR(s.regions[1].energy_j.value(), 1000.0, 1e-3);
  EXPECT_NEAR(s.regions[1].duration_s, 10.0, 1e-5);
  EXPECT_NEAR(s.regions[1].coverage, 1.0, 1e-6);
  EXPECT_DOUBLE_EQ(s.regions[1].metrics.at("samples"), 12000.0);
}

TEST(Totals, EventsThatMatterAreTold) {
  const auto s = summarise(run_of(0, 10), {trace("gpu0", power("gpu/0", Scope::gpu), constant(100, 0, 10))}, {}, {},
                           {{at(1), "gpu0", "rejected", "3700 W"},
                            {at(2), "gpu0", "rejected", "9000 W"},
                            {at(3), "session", "suspend", "12 s"},
                            {at(4), "gpu0", "late", ""}});
  EXPECT_EQ(count_warnings(s, "readings-rejected"), 1u);
  EXPECT_THAT(warning_text(s, "readings-rejected"), HasSubstr("2 times"));
  EXPECT_EQ(count_warnings(s, "suspended"), 1u);
  EXPECT_EQ(s.warnings.size(), 2u);
}

TEST(Totals, NothingAtAll) {
  const auto s = summarise(Manifest{}, {});
  EXPECT_FALSE(s.run.energy_j.has_value());
  EXPECT_FALSE(s.run.duration_s.has_value());
  EXPECT_FALSE(s.run.valid);
}

}  // namespace
}  // namespace ergometer::test
