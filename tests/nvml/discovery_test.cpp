// What discovery finds on machines of many kinds, and what it says about what it does not find.
#include <cstdlib>
#include <set>

#include "nvml/nvml_world.hpp"

namespace ergometer::test {
namespace {

std::vector<int> visible_of(const NvmlWorld& world) {
  std::vector<std::pair<int, int>> ordered;
  for (const auto& gpu : world.found.node.gpus)
    if (gpu.visible) ordered.emplace_back(gpu.ordinal.value_or(-1), gpu.index);
  std::sort(ordered.begin(), ordered.end());
  std::vector<int> indices;
  for (const auto& [ordinal, index] : ordered) indices.push_back(index);
  return indices;
}

TEST(NvmlDiscovery, OneGpuWithEverything) {
  NvmlWorld world;
  world.discover("gpu.gpm.2 = 83\ngpu.name = NVIDIA H200\n");
  ASSERT_EQ(world.found.node.gpus.size(), 1U);
  const GpuInfo& gpu = world.found.node.gpus[0];
  EXPECT_EQ(gpu.uuid, "GPU-00000000-0000-0000-0000-000000000000");
  EXPECT_EQ(gpu.name, "NVIDIA H200");
  EXPECT_EQ(gpu.pci_bus_id, "00000000:01:00.0");
  EXPECT_EQ(gpu.memory_bytes, 150754820096.0);
  EXPECT_EQ(gpu.power_limit_w, 700);
  EXPECT_EQ(gpu.min_power_limit_w, 200);
  EXPECT_EQ(gpu.max_power_limit_w, 700);
  EXPECT_EQ(gpu.default_power_limit_w, 700);
  EXPECT_EQ(gpu.state, "ok");
  EXPECT_TRUE(gpu.visible);
  EXPECT_EQ(gpu.ordinal, 0);
  EXPECT_FALSE(gpu.mig);
  std::set<std::string> names;
  for (const auto& sensor : world.found.sensors) {
    names.insert(sensor->info().name);
    EXPECT_EQ(sensor->info().interface, "nvml");
    std::set<std::string> columns;
    for (const auto& channel : sensor->info().channels) {
      EXPECT_TRUE(columns.insert(channel.column).second) << channel.column;
      EXPECT_EQ(channel.device, gpu.uuid);
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"gpu0", "gpu0-activity", "gpu0-energy", "gpu0-samples", "gpu0-slow", "gpu0-utilisation"}));
  EXPECT_EQ(world.found.node.versions.at("nvidia-driver"), "580.159.04");
  EXPECT_EQ(world.found.node.versions.at("nvml"), "13.580.159.04");
  EXPECT_EQ(world.found.node.versions.at("cuda"), "13.0");
  EXPECT_TRUE(world.found.node.absences.empty());
  EXPECT_TRUE(world.found.warnings.empty());
}

TEST(NvmlDiscovery, GpusOfAllRanksAreVisible) {
  NvmlWorld world;
  world.options.environment = {{"CUDA_VISIBLE_DEVICES", "0"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}};
  world.options.other_ranks = {{{"CUDA_VISIBLE_DEVICES", "2"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}};
  world.discover("gpus = 4\n");
  std::vector<bool> visible;
  for (const auto& gpu : world.found.node.gpus) visible.push_back(gpu.visible);
  EXPECT_EQ(visible, (std::vector<bool>{true, false, true, false}));
}

TEST(NvmlDiscovery, AGpuThatRanksNumberDifferentlyHasNoNumber) {
  NvmlWorld world;
  world.options.environment = {{"CUDA_VISIBLE_DEVICES", "0,1"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}};
  world.options.other_ranks = {{{"CUDA_VISIBLE_DEVICES", "1"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}};
  world.discover("gpus = 2\n");
  EXPECT_EQ(world.found.node.gpus[0].ordinal, 0);
  EXPECT_FALSE(world.found.node.gpus[1].ordinal) << "1 in one rank, 0 in the other";
}

TEST(NvmlDiscovery, ChannelsSayWhatTheyMean) {
  NvmlWorld world;
  world.discover("");
  const auto samples = world.channel("gpu0-samples", "power_w");
  EXPECT_EQ(samples.method, Method::samples);
  EXPECT_EQ(samples.domain, "gpu/0");
  EXPECT_EQ(samples.scope, Scope::gpu);
  EXPECT_EQ(samples.period, std::chrono::milliseconds(20));
  EXPECT_TRUE(world.sensor("gpu0-samples")->info().own_time);
  EXPECT_EQ(world.sensor("gpu0-samples")->info().interval, std::chrono::milliseconds(500));
  const auto energy = world.channel("gpu0-energy", "energy_j");
  EXPECT_EQ(energy.method, Method::counter);
  EXPECT_EQ(energy.behaviour, Behaviour::counter);
  EXPECT_EQ(energy.range, std::nullopt);
  EXPECT_EQ(energy.resolution, 0.001);
  EXPECT_EQ(energy.period, std::chrono::milliseconds(100));
  EXPECT_EQ(world.sensor("gpu0-energy")->info().interval, std::chrono::seconds(5));
  const auto memory = world.channel("gpu0", "memory_power_average_w");
  EXPECT_EQ(memory.scope, Scope::memory);
  EXPECT_FALSE(memory.in_total);
  // Limits and gauges are no energy.
  EXPECT_EQ(world.channel("gpu0-slow", "power_limit_w").method, std::nullopt);
  EXPECT_EQ(world.channel("gpu0", "memory_used_bytes").unit, "B");
}

TEST(NvmlDiscovery, PeriodOfTheSampleBufferIsMeasured) {
  NvmlWorld world;
  world.fake.set_time(mono_ns(0), wall_ns(0));
  TempDir dir;
  dir.write("s", "gpu.sample_ms = 50\n");
  ASSERT_EQ(world.fake.load((dir / "s").string()), 0);
  // The scenario has run for 1000 s when discovery looks.
  world.advance_to(1);
  Host host = Host::real();
  discover_nvml(host, world.options, world.found);
  EXPECT_EQ(world.channel("gpu0-samples", "power_w").period, std::chrono::milliseconds(50));
}

TEST(NvmlDiscovery, IntervalOfTheFastGauges) {
  NvmlWorld world;
  world.options.interval = std::chrono::milliseconds(250);
  world.discover("");
  EXPECT_EQ(world.sensor("gpu0")->info().interval, std::chrono::milliseconds(250));
  EXPECT_EQ(world.sensor("gpu0-energy")->info().interval, std::chrono::seconds(5));
}

TEST(NvmlDiscovery, NoLibrary) {
  Discovery found;
  DiscoverOptions options;
  options.nvml_path = "libnvidia-ml-not-here.so.1";
  discover_nvml(Host::real(), options, found);
  EXPECT_TRUE(found.sensors.empty());
  ASSERT_EQ(found.node.absences.size(), 1U);
  EXPECT_EQ(found.node.absences[0].reason, "no NVIDIA driver: libnvidia-ml-not-here.so.1 not found");
  EXPECT_FALSE(found.node.absences[0].remedy.empty());
}

TEST(NvmlDiscovery, FileThatIsNoNvml) {
  TempDir dir;
  dir.write("text.so", "not a library");
  for (const std::string& path : {(dir / "text.so").string(), std::string(FAKE_CUDA)}) {
    Discovery found;
    DiscoverOptions options;
    options.nvml_path = path;
    discover_nvml(Host::real(), options, found);
    EXPECT_TRUE(found.sensors.empty());
    ASSERT_EQ(found.node.absences.size(), 1U);
    EXPECT_NE(found.node.absences[0].reason.find(path), std::string::npos);
  }
}

TEST(NvmlDiscovery, InitFailures) {
  const std::pair<int, const char*> cases[] = {
      {9, "not loaded"}, {18, "different versions"}, {4, "no permission"}, {999, "unknown"}};
  for (const auto& [code, text] : cases) {
    NvmlWorld world;
    world.discover("fault = nvmlInit " + std::to_string(code) + "\n");
    EXPECT_TRUE(world.found.sensors.empty());
    ASSERT_EQ(world.found.node.absences.size(), 1U);
    EXPECT_NE(world.found.node.absences[0].reason.find(text), std::string::npos) << world.found.node.absences[0].reason;
    EXPECT_FALSE(world.found.node.absences[0].remedy.empty());
  }
}

TEST(NvmlDiscovery, NoGpu) {
  NvmlWorld world;
  world.discover("gpus = 0\n");
  EXPECT_TRUE(world.found.sensors.empty());
  ASSERT_EQ(world.found.node.absences.size(), 1U);
  EXPECT_EQ(world.found.node.absences[0].reason, "the NVIDIA driver lists no GPU");
}

TEST(NvmlDiscovery, F17_NoEnergyCounterIsAskedOnce) {
  NvmlWorld world;
  world.discover(
      "gpu.unsupported = nvmlDeviceGetTotalEnergyConsumption nvmlDeviceGetFieldValues nvmlDeviceGetSamples\n"
      "gpu.power = 26\ngpu.architecture = 4\ngpu.compute = 6.1\n");
  EXPECT_EQ(world.sensor("gpu0-energy"), nullptr);
  const auto absence = world.absence("GPU 0 energy counter");
  ASSERT_TRUE(absence);
  EXPECT_EQ(absence->reason, "not supported");
  const auto channel = world.channel("gpu0", "power_instant_w");
  EXPECT_EQ(channel.method, Method::integral);
  const auto series = world.poll("gpu0", 3600, 10);
  EXPECT_DOUBLE_EQ(series.integral("power_instant_w"), 93600);
  EXPECT_EQ(world.fake.calls("nvmlDeviceGetTotalEnergyConsumption"), 1U);
}

TEST(NvmlDiscovery, F18_UnsupportedGpuDoesNotStopTheOther) {
  NvmlWorld world;
  world.discover(
      "gpus = 2\ngpu0.power = 50\n"
      "gpu1.unsupported = nvmlDeviceGetPowerUsage nvmlDeviceGetTotalEnergyConsumption nvmlDeviceGetFieldValues "
      "nvmlDeviceGetSamples nvmlDeviceGetComputeRunningProcesses\n");
  ASSERT_EQ(world.found.node.gpus.size(), 2U);
  EXPECT_EQ(world.found.node.gpus[0].state, "ok");
  EXPECT_EQ(world.found.node.gpus[1].state, "not measurable");
  EXPECT_TRUE(world.absence("GPU 1 power"));
  EXPECT_TRUE(world.absence("GPU 1 energy counter"));
  EXPECT_TRUE(world.absence("GPU 1 process list"));
  EXPECT_FALSE(world.absence("GPU 0 energy counter"));
  const auto energy = world.poll("gpu0-energy", 10, 1).column("energy_j");
  EXPECT_EQ(*energy.back() - *energy.front(), 500);
  // What GPU 1 can tell is still recorded.
  EXPECT_TRUE(world.has("gpu1", "memory_used_bytes"));
  EXPECT_FALSE(world.has("gpu1", "power_average_w"));
}

TEST(NvmlDiscovery, F36_OneVisibleOfFour) {
  NvmlWorld world;
  world.options.environment["CUDA_VISIBLE_DEVICES"] = "2";
  world.discover("gpus = 4\ngpu0.power = 100\ngpu1.power = 200\ngpu2.power = 300\ngpu3.power = 400\n");
  EXPECT_EQ(visible_of(world), std::vector<int>{2});
  EXPECT_EQ(world.found.node.gpus[2].ordinal, 0);
  EXPECT_EQ(world.found.node.gpus[0].ordinal, std::nullopt);
  auto all = world.poll_all({"gpu0-energy", "gpu1-energy", "gpu2-energy", "gpu3-energy"}, 10, 1);
  double machine = 0;
  for (auto& [name, series] : all) {
    const auto energy = series.column("energy_j");
    machine += *energy.back() - *energy.front();
    if (name == "gpu2-energy") {
      EXPECT_EQ(*energy.back() - *energy.front(), 3000);
    }
  }
  EXPECT_EQ(machine, 10000);
}

TEST(NvmlDiscovery, F37_OrderIsKept) {
  NvmlWorld world;
  world.options.environment["CUDA_VISIBLE_DEVICES"] = "2,1";
  world.discover("gpus = 4\n");
  EXPECT_EQ(visible_of(world), (std::vector<int>{2, 1}));
  EXPECT_EQ(world.found.node.gpus[2].ordinal, 0);
  EXPECT_EQ(world.found.node.gpus[1].ordinal, 1);
}

TEST(NvmlDiscovery, F39_FastestFirst) {
  const std::string machine =
      "gpus = 2\ngpu0.name = Slow\ngpu0.bus_id = 00000000:01:00.0\ngpu0.power = 70\n"
      "gpu1.name = Fast\ngpu1.bus_id = 00000000:41:00.0\ngpu1.power = 300\n";
  ::setenv("ERGOMETER_FAKE_CUDA", "0000:41:00.0,0000:01:00.0", 1);
  ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  {
    NvmlWorld world;
    world.cuda = FAKE_CUDA;
    world.options.environment["CUDA_VISIBLE_DEVICES"] = "0";
    world.discover(machine);
    EXPECT_EQ(visible_of(world), std::vector<int>{1});
    EXPECT_TRUE(world.found.warnings.empty());
    EXPECT_DOUBLE_EQ(world.poll("gpu1", 10, 1).integral("power_instant_w"), 3000);
  }
  {
    NvmlWorld world;  // without libcuda the mapping is not certain, and that is said
    world.options.environment["CUDA_VISIBLE_DEVICES"] = "0";
    world.discover(machine);
    EXPECT_EQ(visible_of(world), std::vector<int>{0});
    ASSERT_EQ(world.found.warnings.size(), 1U);
    EXPECT_EQ(world.found.warnings[0].code, "cuda-order-uncertain");
  }
  {
    NvmlWorld world;
    world.options.environment = {{"CUDA_VISIBLE_DEVICES", "0"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}};
    world.discover(machine);
    EXPECT_EQ(visible_of(world), std::vector<int>{0});
    EXPECT_TRUE(world.found.warnings.empty());
    EXPECT_DOUBLE_EQ(world.poll("gpu0", 10, 1).integral("power_instant_w"), 700);
  }
  ::unsetenv("ERGOMETER_FAKE_CUDA");
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(NvmlDiscovery, F41_SliceOfGpu1) {
  NvmlWorld world;
  world.options.environment["CUDA_VISIBLE_DEVICES"] = "MIG-11111111-2222-3333-4444-555555555555";
  world.discover("gpus = 2\ngpu1.power = 200\ngpu1.mig = MIG-11111111-2222-3333-4444-555555555555/3/0\n");
  EXPECT_EQ(visible_of(world), std::vector<int>{1});
  EXPECT_TRUE(world.found.node.gpus[1].mig);
  EXPECT_NE(world.found.node.gpus[1].note.find("whole GPU, shared"), std::string::npos);
  ASSERT_EQ(world.found.warnings.size(), 1U);
  EXPECT_EQ(world.found.warnings[0].code, "mig-shared");
  const auto energy = world.poll("gpu1-energy", 10, 1).column("energy_j");
  EXPECT_EQ(*energy.back() - *energy.front(), 2000);
}

TEST(NvmlDiscovery, F43_PowerOncePerPhysicalGpu) {
  NvmlWorld world;
  world.discover("gpu.power = 52.636\ngpu.mig = MIG-a/1/0 MIG-b/2/0 MIG-c/3/0 MIG-d/4/0\n");
  ASSERT_EQ(world.found.node.gpus.size(), 1U);
  double total = 0;
  for (const auto& sensor : world.found.sensors)
    for (const auto& channel : sensor->info().channels)
      if (channel.method == Method::integral && channel.in_total)
        total += *world.poll(sensor->info().name, world.now(), 1).column(channel.column).front();
  EXPECT_DOUBLE_EQ(total, 52.636);
}

TEST(NvmlDiscovery, F44_UtilisationUnderMigIsEmpty) {
  NvmlWorld world;
  world.discover(
      "gpu.mig = MIG-a/1/0\ngpu.power = 250\ngpu.memory_used = 3221225472\n"
      "gpu.unsupported = nvmlDeviceGetUtilizationRates samples:1 samples:2 nvmlDeviceGetProcessUtilization\n");
  EXPECT_FALSE(world.has("gpu0", "gpu_active_ratio"));
  EXPECT_EQ(world.sensor("gpu0-utilisation"), nullptr);
  ASSERT_TRUE(world.absence("GPU 0 utilisation"));
  const auto series = world.poll("gpu0", 10, 1);
  EXPECT_EQ(series.column("memory_used_bytes").back(), 3221225472.0);
  EXPECT_EQ(series.column("power_average_w").back(), 250);
}

TEST(NvmlDiscovery, F44_UtilisationThatStopsLaterIsEmptyToo) {
  NvmlWorld world;
  world.discover("gpu.fault = nvmlDeviceGetUtilizationRates 3 5\n");
  const auto series = world.poll("gpu0", 9, 1);
  const auto active = series.column("gpu_active_ratio");
  EXPECT_EQ(active[4], 0.5);
  for (std::size_t i = 5; i < active.size(); ++i) EXPECT_EQ(active[i], std::nullopt);
  EXPECT_EQ(series.count("note"), 1U);
  EXPECT_EQ(series.column("power_average_w").back(), 100);
  // Probe, seconds 0 to 4, and the one call that was told "not supported".
  EXPECT_EQ(world.fake.calls("nvmlDeviceGetUtilizationRates"), 7U);
}

TEST(NvmlDiscovery, F45_GpuLostBeforeTheStart) {
  for (const char* code : {"15", "999"})
    for (const char* function : {"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetPowerUsage", "*"}) {
      NvmlWorld world;
      world.discover(std::string("gpus = 4\ngpu1.fault = ") + function + " " + code + "\n");
      ASSERT_EQ(world.found.node.gpus.size(), 4U);
      EXPECT_EQ(world.found.node.gpus[1].state, "lost");
      EXPECT_TRUE(world.found.node.gpus[1].visible);
      ASSERT_TRUE(world.absence("GPU 1"));
      EXPECT_FALSE(world.absence("GPU 1")->remedy.empty());
      EXPECT_EQ(world.sensor("gpu1"), nullptr);
      double total = 0;
      for (auto& [name, series] : world.poll_all({"gpu0-energy", "gpu2-energy", "gpu3-energy"}, 10, 1)) {
        const auto energy = series.column("energy_j");
        total += *energy.back() - *energy.front();
        EXPECT_TRUE(series.failures.empty());
      }
      EXPECT_EQ(total, 3000);
    }
}

TEST(NvmlDiscovery, F50_OldLibraryLacksFeaturesOnly) {
  NvmlWorld world(FAKE_NVML_OLD);
  world.discover("gpu.power = 150\ngpu.architecture = 5\ngpu.compute = 7.0\n");
  ASSERT_EQ(world.found.node.gpus.size(), 1U);
  EXPECT_EQ(world.found.node.gpus[0].state, "ok");
  EXPECT_EQ(world.found.node.gpus[0].pci_bus_id, "0000:01:00.0");
  ASSERT_TRUE(world.absence("GPU 0 process list"));
  EXPECT_EQ(world.absence("GPU 0 process list")->reason, "the driver's NVML library lacks the function");
  EXPECT_TRUE(world.absence("GPU 0 power samples"));
  EXPECT_EQ(world.sensor("gpu0-samples"), nullptr);
  EXPECT_FALSE(world.has("gpu0-slow", "process_count"));
  const auto series = world.poll("gpu0", 10, 0.5);
  EXPECT_DOUBLE_EQ(series.integral("power_instant_w"), 1500);
  EXPECT_TRUE(series.failures.empty());
}

TEST(NvmlDiscovery, F54_NothingSampledYetIsNoError) {
  NvmlWorld world;
  world.discover("gpu.process_utilisation = steps - - - - - 80\n");
  ASSERT_TRUE(world.has("gpu0-slow", "process_active_ratio"));
  const auto values = world.poll("gpu0-slow", 7, 1).column("process_active_ratio");
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(values[i], std::nullopt);
  EXPECT_EQ(values[5], 0.8);
}

TEST(NvmlDiscovery, F89_IndexInsideTheJob) {
  for (const char* visible : {"0", "GPU-bbbb"}) {
    NvmlWorld world;
    world.options.environment = {{"SLURM_JOB_GPUS", "1"}, {"CUDA_VISIBLE_DEVICES", visible}};
    world.discover("gpus = 1\ngpu0.uuid = GPU-bbbb0000-0000-0000-0000-000000000001\ngpu0.power = 300\n");
    EXPECT_EQ(visible_of(world), std::vector<int>{0});
    const auto channel = world.channel("gpu0-energy", "energy_j");
    EXPECT_EQ(channel.device, "GPU-bbbb0000-0000-0000-0000-000000000001");
    const auto energy = world.poll("gpu0-energy", 10, 1).column("energy_j");
    EXPECT_EQ(*energy.back() - *energy.front(), 3000);
  }
}

TEST(NvmlDiscovery, F52_GpuWhoseProbeHangsHidesOnlyItself) {
  NvmlWorld world;
  world.discover("gpus = 3\ngpu1.block = nvmlDeviceGetPowerUsage 0 6\n");
  ASSERT_EQ(world.found.node.gpus.size(), 3U);
  EXPECT_EQ(world.found.node.gpus[1].state, "not measurable");
  EXPECT_TRUE(world.absence("GPU 1"));
  EXPECT_NE(world.sensor("gpu0"), nullptr);
  EXPECT_NE(world.sensor("gpu2"), nullptr);
  EXPECT_EQ(world.sensor("gpu1"), nullptr);
}

}  // namespace
}  // namespace ergometer::test
