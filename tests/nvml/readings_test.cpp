// The numbers that the sensors give: units, times, methods, and what is not taken as a reading.
#include "device/nvml/query.hpp"
#include "nvml/nvml_world.hpp"

namespace ergometer::test {
namespace {

using Values = std::vector<std::optional<double>>;

TEST(NvmlReadings, F06_CounterDropPassesRaw) {
  NvmlWorld world;
  world.discover("gpu.energy_mj = steps 9000000 9050000 12000 62000\n");
  EXPECT_EQ(world.poll("gpu0-energy", 3, 1).column("energy_j"), (Values{9000, 9050, 12, 62}));
  EXPECT_EQ(world.channel("gpu0-energy", "energy_j").range, std::nullopt);
}

TEST(NvmlReadings, F08_MillijoulesAndMilliwatts) {
  NvmlWorld world;
  world.discover("gpu.energy_mj = ramp 1000000 17522288 60\ngpu.power = 285.432\n");
  auto all = world.poll_all({"gpu0-energy", "gpu0"}, 60, 60);
  const auto energy = all["gpu0-energy"].column("energy_j");
  EXPECT_EQ(energy[0], 1000);
  EXPECT_EQ(energy[1], 17522.288);
  EXPECT_DOUBLE_EQ(*energy[1] - *energy[0], 16522.288);
  EXPECT_EQ(all["gpu0"].column("power_instant_w")[0], 285.432);
}

TEST(NvmlReadings, F14_MemoryInBytesAndUnknownProcessMemory) {
  NvmlWorld world;
  world.discover("gpu.memory_total = 17179869184\ngpu.memory_used = 15057551360\ngpu.processes = 77:-\n");
  EXPECT_EQ(world.found.node.gpus[0].memory_bytes, 17179869184.0);
  EXPECT_EQ(world.poll("gpu0", 0, 1).column("memory_used_bytes")[0], 15057551360.0);
  const auto slow = world.poll("gpu0-slow", 0, 1);
  EXPECT_EQ(slow.column("process_count")[0], 1);
  EXPECT_EQ(slow.column("process_memory_bytes")[0], std::nullopt);
}

TEST(NvmlReadings, ProcessesAreCountedAndSummed) {
  NvmlWorld world;
  std::string many = "gpu.processes =";
  for (int pid = 1; pid <= 200; ++pid) many += " " + std::to_string(pid) + ":1000";
  world.discover(many + "\n");
  const auto slow = world.poll("gpu0-slow", 0, 1);
  EXPECT_EQ(slow.column("process_count")[0], 200);
  EXPECT_EQ(slow.column("process_memory_bytes")[0], 200000);
}

TEST(NvmlReadings, F61_AverageAndInstantAreTold) {
  NvmlWorld world;
  world.discover("gpu.power = square 500 100 0.5 0.5\n");
  const auto average = world.channel("gpu0", "power_average_w");
  EXPECT_EQ(average.method, Method::average);
  EXPECT_EQ(average.window, std::chrono::seconds(1));
  EXPECT_NE(average.note.find("185"), std::string::npos);
  EXPECT_EQ(world.channel("gpu0", "power_instant_w").method, Method::integral);

  auto all = world.poll_all({"gpu0", "gpu0-energy", "gpu0-samples"}, 10, 0.1);
  for (const auto& value : all["gpu0"].column("power_average_w")) EXPECT_EQ(value, 300);
  int high = 0;
  for (const auto& value : all["gpu0"].column("power_instant_w")) {
    ASSERT_TRUE(value == 500.0 || value == 100.0);
    high += *value == 500 ? 1 : 0;
  }
  EXPECT_EQ(high, 51);
  const auto energy = all["gpu0-energy"].column("energy_j");
  EXPECT_NEAR(*energy.back() - *energy.front(), 3000, 1e-9);
}

TEST(NvmlReadings, F61_ClassicCallIsLabelledByArchitecture) {
  {
    NvmlWorld world;  // Hopper without the fields: the classic call is the mean of a second
    world.discover("gpu.power = square 500 100 0.5 0.5\ngpu.unsupported = nvmlDeviceGetFieldValues\n");
    const auto channel = world.channel("gpu0", "power_average_w");
    EXPECT_EQ(channel.method, Method::average);
    EXPECT_EQ(channel.window, std::chrono::seconds(1));
    EXPECT_NE(channel.note.find("nvmlDeviceGetPowerUsage"), std::string::npos);
    EXPECT_FALSE(world.has("gpu0", "power_instant_w"));
  }
  {
    NvmlWorld world;  // GA100: momentary, 25 ms of every 100
    world.discover("gpu.architecture = 7\ngpu.compute = 8.0\ngpu.unsupported = field:185 field:186\n");
    const auto channel = world.channel("gpu0", "power_instant_w");
    EXPECT_EQ(channel.method, Method::integral);
    EXPECT_EQ(channel.window, std::chrono::milliseconds(25));
    EXPECT_FALSE(world.has("gpu0", "power_average_w"));
  }
  {
    NvmlWorld world;  // GA100 with field 186: the same number is not read twice
    world.discover("gpu.architecture = 7\ngpu.compute = 8.0\n");
    EXPECT_TRUE(world.has("gpu0", "power_instant_w"));
    const auto before = world.fake.calls("nvmlDeviceGetPowerUsage");
    world.poll("gpu0", 5, 1);
    EXPECT_EQ(world.fake.calls("nvmlDeviceGetPowerUsage"), before);
  }
}

TEST(NvmlReadings, F61_BehaviourByArchitecture) {
  using namespace nvml;
  using std::chrono::milliseconds;
  const auto is = [](unsigned architecture, int major, int minor, Method method, std::optional<Nanos> window) {
    const auto power = power_behaviour(architecture, major, minor);
    return power.method == method && power.window == window;
  };
  EXPECT_TRUE(is(kPascal, 6, 0, Method::integral, milliseconds(10)));
  EXPECT_TRUE(is(kVolta, 7, 0, Method::integral, milliseconds(10)));
  EXPECT_TRUE(is(kTuring, 7, 5, Method::integral, milliseconds(100)));
  EXPECT_TRUE(is(kAmpere, 8, 0, Method::integral, milliseconds(25)));
  EXPECT_TRUE(is(kAmpere, 8, 6, Method::average, milliseconds(1000)));
  EXPECT_TRUE(is(kAda, 8, 9, Method::average, milliseconds(1000)));
  EXPECT_TRUE(is(kHopper, 9, 0, Method::average, milliseconds(1000)));
  EXPECT_TRUE(is(10, 10, 0, Method::average, milliseconds(1000)));
  EXPECT_TRUE(is(kArchitectureUnknown, 0, 0, Method::integral, std::nullopt));
}

TEST(NvmlReadings, SampleBufferKeepsTheDriversTimes) {
  NvmlWorld world;
  world.discover("gpu.power = ramp 0 1000 10\n");
  const auto series = world.poll("gpu0-samples", 10, 0.5);
  ASSERT_EQ(series.rows.size(), 501U);
  for (std::size_t i = 0; i < series.rows.size(); ++i) {
    EXPECT_NEAR(series.t[i], 0.02 * static_cast<double>(i), 1e-6);
    EXPECT_NEAR(*series.rows[i][0], 2.0 * static_cast<double>(i), 1e-9);
  }
  EXPECT_NEAR(series.integral("power_w"), 5000, 1e-3);
}

TEST(NvmlReadings, FirstHarvestIsTheLastTwoSeconds) {
  NvmlWorld world;
  world.discover("");
  world.advance_to(60);
  const auto series = world.poll("gpu0-samples", 60, 1);
  ASSERT_EQ(series.rows.size(), 101U);
  EXPECT_NEAR(series.t.front(), 58, 1e-6);
  EXPECT_NEAR(series.t.back(), 60, 1e-6);
}

TEST(NvmlReadings, LateHarvestLeavesAGap) {
  NvmlWorld world;
  world.discover("");
  const auto series = world.poll("gpu0-samples", 9, 3);  // the ring holds 2.36 s
  double widest = 0;
  for (std::size_t i = 1; i < series.t.size(); ++i) widest = std::max(widest, series.t[i] - series.t[i - 1]);
  EXPECT_NEAR(widest, 0.64, 1e-6);
  EXPECT_TRUE(series.failures.empty());
}

TEST(NvmlReadings, WallClockSetBackLosesNoMoreThanTheRing) {
  NvmlWorld world;
  world.discover("");
  auto before = world.poll("gpu0-samples", 5, 0.5);
  world.step_wall(-3600);
  const auto after = world.poll("gpu0-samples", 10, 0.5);
  ASSERT_FALSE(after.t.empty());
  EXPECT_GE(after.t.front(), 2.5);
  EXPECT_NEAR(after.t.back(), 10, 1e-6);
  for (const double t : after.t) EXPECT_LE(t, 10.001);
  // Samples stamped before the step look as if from the future: said once, and left out.
  EXPECT_EQ(after.count("clock"), 1U);
}

TEST(NvmlReadings, NothingSampledYetIsNoFailure) {
  NvmlWorld world;
  world.discover("gpu.power = steps - - - 100\ngpu.fault = nvmlDeviceGetTotalEnergyConsumption 6 0 3\n");
  auto all = world.poll_all({"gpu0-samples", "gpu0-energy"}, 5, 1);
  EXPECT_TRUE(all["gpu0-samples"].failures.empty());
  EXPECT_NEAR(all["gpu0-samples"].t.front(), 3, 1e-6);
  EXPECT_TRUE(all["gpu0-energy"].failures.empty());
  EXPECT_EQ(all["gpu0-energy"].column("energy_j")[0], std::nullopt);
}

TEST(NvmlReadings, UtilisationBuffers) {
  NvmlWorld world;
  world.discover("gpu.utilisation = steps 10 20 30\ngpu.memory_utilisation = 7\n");
  const auto series = world.poll("gpu0-utilisation", 10, 5);
  ASSERT_EQ(series.rows.size(), 51U);  // both columns at the same times
  EXPECT_EQ(series.column("sampled_gpu_active_ratio")[0], 0.1);
  EXPECT_EQ(series.column("sampled_gpu_active_ratio")[5], 0.2);
  EXPECT_EQ(series.column("sampled_memory_active_ratio")[50], 0.07);
}

TEST(NvmlReadings, GaugesInBaseUnits) {
  NvmlWorld world;
  world.discover("gpu.sm_clock = 1980\ngpu.memory_clock = 3201\ngpu.temperature = 61\ngpu.memory_temperature = 70\n");
  const auto series = world.poll("gpu0", 0, 1);
  EXPECT_EQ(series.column("sm_clock_hz")[0], 1.98e9);
  EXPECT_EQ(series.column("memory_clock_hz")[0], 3.201e9);
  EXPECT_EQ(series.column("temperature_celsius")[0], 61);
  EXPECT_EQ(world.poll("gpu0-slow", 0, 1).column("memory_temperature_celsius")[0], 70);
  EXPECT_EQ(series.column("gpu_active_ratio")[0], 0.5);
  EXPECT_EQ(series.column("memory_active_ratio")[0], 0.2);
}

TEST(NvmlReadings, GpmIsTheMeanBetweenTwoReads) {
  NvmlWorld world;
  world.discover("gpu.gpm.2 = steps 80 40\ngpu.gpm.3 = 12\ngpu.gpm.5 = 81\ngpu.gpm.10 = 15\ngpu.gpm.20 = 2\n");
  const auto series = world.poll("gpu0-activity", 2, 1);
  EXPECT_EQ(series.column("sm_active_ratio"), (Values{std::nullopt, 0.8, 0.4}));
  EXPECT_EQ(series.column("sm_occupancy_ratio")[1], 0.12);
  EXPECT_EQ(series.column("tensor_active_ratio")[1], 0.81);
  EXPECT_EQ(series.column("dram_active_ratio")[1], 0.15);
  EXPECT_EQ(series.column("pcie_sent_bytes_per_s")[1], 2097152);
  EXPECT_EQ(series.column("nvlink_sent_bytes_per_s")[1], std::nullopt);
  EXPECT_EQ(world.fake.calls("nvmlGpmSampleAlloc"), 2U);
  world.found.sensors.clear();
  EXPECT_EQ(world.fake.calls("nvmlGpmSampleFree"), 2U);
}

TEST(NvmlReadings, GpmNeedsAnIntervalThatIsLongEnough) {
  NvmlWorld world;
  world.discover("gpu.gpm.2 = steps 80 40\n");
  const auto series = world.poll("gpu0-activity", 0.25, 0.05);
  const auto active = series.column("sm_active_ratio");
  EXPECT_EQ(active, (Values{std::nullopt, std::nullopt, 0.8, std::nullopt, 0.8, std::nullopt}));
}

TEST(NvmlReadings, ThrottleBeginsAndEndsOnce) {
  NvmlWorld world;
  world.discover("gpu.throttle.74 = steps 0 0 1 0.5 0 0 0 0 0\n");
  const auto series = world.poll("gpu0-slow", 9, 1);
  EXPECT_EQ(series.column("throttle_power_cap_s"), (Values{0, 0, 0, 1, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5}));
  ASSERT_EQ(series.count("throttle"), 2U);
  EXPECT_EQ(series.events[0].detail, "GPU 0: power cap: begins");
  EXPECT_EQ(series.events[1].detail, "GPU 0: power cap: ended after 1.5 s of it");
  EXPECT_EQ(world.channel("gpu0-slow", "throttle_power_cap_s").behaviour, Behaviour::counter);
}

TEST(NvmlReadings, LimitsAndReasons) {
  NvmlWorld world;
  world.discover("gpu.limit = 500\ngpu.limit_requested = 600\ngpu.reasons = 4\n");
  const auto series = world.poll("gpu0-slow", 0, 1);
  EXPECT_EQ(series.column("power_limit_w")[0], 500);
  EXPECT_EQ(series.column("power_limit_requested_w")[0], 600);
  EXPECT_EQ(series.column("clock_event_reasons")[0], 4);
  EXPECT_EQ(series.column("mig_mode")[0], 0);
}

TEST(NvmlReadings, F115_AllOnesAreMissing) {
  NvmlWorld world;
  world.discover("gpu.temperature = 4294967295\ngpu.memory_used = 18446744073709551615\ngpu.sm_clock = 4294967295\n");
  const auto series = world.poll("gpu0", 1, 1);
  for (const char* column : {"temperature_celsius", "sm_clock_hz", "memory_used_bytes"})
    EXPECT_EQ(series.column(column), (Values{std::nullopt, std::nullopt})) << column;
  EXPECT_EQ(series.column("power_average_w")[1], 100);
}

TEST(NvmlReadings, F116_ImpossibleNumbersAreMissingAndCounted) {
  NvmlWorld world;
  world.discover(
      "gpu.limit = 450\ngpu.limit_default = 450\ngpu.limit_max = 450\ngpu.power = steps 200 3700 210 205\n"
      "gpu.utilisation = steps 50 4294967295 101 55\n");
  const auto series = world.poll("gpu0", 3, 1);
  EXPECT_EQ(series.column("power_instant_w"), (Values{200, std::nullopt, 210, 205}));
  EXPECT_EQ(series.column("gpu_active_ratio"), (Values{0.5, std::nullopt, std::nullopt, 0.55}));
  std::vector<std::string> rejected;
  for (const auto& event : series.events)
    if (event.kind == "rejected") rejected.push_back(event.detail);
  const auto count_of = [&](const std::string& start) {
    return std::count_if(rejected.begin(), rejected.end(), [&](const auto& text) { return text.starts_with(start); });
  };
  EXPECT_EQ(count_of("power_instant_w: 1 reading in a row rejected"), 1);
  EXPECT_EQ(count_of("gpu_active_ratio: 2 readings in a row rejected"), 1);
}

TEST(NvmlReadings, F116_ImpossibleSampleIsAnEmptyCell) {
  NvmlWorld world;
  world.discover(
      "gpu.limit = 450\ngpu.limit_default = 450\ngpu.limit_max = 450\ngpu.sample_ms = 1000\n"
      "gpu.power = steps 200 3700 210 205\n");
  const auto series = world.poll("gpu0-samples", 3, 1);
  EXPECT_EQ(series.column("power_w"), (Values{200, std::nullopt, 210, 205}));
  EXPECT_EQ(series.count("rejected"), 1U);
}

TEST(NvmlReadings, F117_UsedAboveTotalIsKeptAndFlagged) {
  NvmlWorld world;
  world.discover("gpu.memory_total = 8589934592\ngpu.memory_used = 9663676416\n");
  const auto series = world.poll("gpu0", 5, 1);
  for (const auto& value : series.column("memory_used_bytes")) EXPECT_EQ(value, 9663676416.0);
  EXPECT_EQ(series.count("note"), 1U);
  EXPECT_EQ(series.detail("note"), "GPU 0: 9663676416 bytes of memory used, more than its 8589934592");
  EXPECT_EQ(world.found.node.gpus[0].memory_bytes, 8589934592.0);
}

}  // namespace
}  // namespace ergometer::test
