#include "device/amdgpu/amdgpu.hpp"

#include <gmock/gmock.h>

#include "device/amdgpu/card_sensor.hpp"
#include "device/amdgpu/visibility.hpp"
#include "device/fake_tree.hpp"
#include "device/metrics_table.hpp"

namespace ergometer::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

struct AmdTree : FakeTree {
  // Lays out card N with a bus id and what most discrete cards have.
  void card(int number, const std::string& bus_id, const std::string& unique_id = "4b2c1a9f8d3e6f7a") const {
    const auto device = folder(number);
    write(device + "uevent",
          fmt::format("DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_ID=1002:740C\nPCI_SLOT_NAME={}\n", bus_id));
    if (!unique_id.empty()) write(device + "unique_id", unique_id + "\n");
    write(device + "mem_info_vram_total", "68702699520\n");
    write(device + "mem_info_vram_used", "1073741824\n");
    const auto hwmon = monitor(number);
    write(hwmon + "name", "amdgpu\n");
    write(hwmon + "power1_average", "285000000\n");
    write(hwmon + "power1_cap", "450000000\n");
    write(hwmon + "power1_cap_max", "500000000\n");
    write(hwmon + "power1_cap_min", "0\n");
    write(hwmon + "power1_cap_default", "450000000\n");
    write(hwmon + "freq1_input", "1700000000\n");
    write(hwmon + "freq2_input", "1600000000\n");
    write(hwmon + "temp1_input", "45000\n");
    write(hwmon + "temp2_input", "52000\n");
    write(hwmon + "temp3_input", "60000\n");
    write(device + "gpu_metrics", metrics_v1(3));
  }
  void node(int number, unsigned location, int simds = 440) const {
    write(fmt::format("/sys/class/kfd/kfd/topology/nodes/{}/properties", number),
          fmt::format("cpu_cores_count 0\nsimd_count {}\nlocation_id {}\ndomain 0\n", simds, location));
  }
  std::string folder(int number) const { return fmt::format("/sys/class/drm/card{}/device/", number); }
  std::string monitor(int number) const { return folder(number) + fmt::format("hwmon/hwmon{}/", number + 3); }
  Discovery discover(const Environment& environment = {}, const std::vector<Environment>& other_ranks = {}) const {
    Discovery out;
    DiscoverOptions options;
    options.environment = environment;
    options.other_ranks = other_ranks;
    discover_amdgpu(host(), options, out);
    return out;
  }
};

TEST(Amdgpu, OneCard) {
  AmdTree tree;
  tree.card(0, "0000:03:00.0");
  tree.write("/sys/class/drm/card0-DP-1/status", "connected\n");
  const auto found = tree.discover();
  ASSERT_EQ(found.node.gpus.size(), 1u);
  const auto& gpu = found.node.gpus[0];
  EXPECT_EQ(gpu.uuid, "GPU-4b2c1a9f8d3e6f7a");
  EXPECT_EQ(gpu.pci_bus_id, "0000:03:00.0");
  EXPECT_EQ(gpu.name, "AMD GPU (1002:740c)");
  EXPECT_EQ(gpu.power_limit_w, 450.0);
  EXPECT_EQ(gpu.max_power_limit_w, 500.0);
  EXPECT_EQ(gpu.default_power_limit_w, 450.0);
  EXPECT_EQ(gpu.min_power_limit_w, std::nullopt) << "0 is no limit";
  EXPECT_EQ(gpu.memory_bytes, 68702699520.0);
  EXPECT_TRUE(gpu.visible);
  EXPECT_EQ(gpu.state, "ok");

  auto& sensor = *sensor_named(found, "gpu0");
  const auto row = read_row(sensor);
  EXPECT_EQ(row[column(sensor, "power_average_w")], 285.0);
  EXPECT_EQ(row[column(sensor, "energy_j")], 10.0);
  EXPECT_EQ(row[column(sensor, "gpu_active_ratio")], 0.75);
  EXPECT_EQ(row[column(sensor, "memory_active_ratio")], 0.4);
  EXPECT_EQ(channel(sensor, "power_average_w").method, Method::average);
  EXPECT_EQ(channel(sensor, "energy_j").domain, "gpu/0");
  EXPECT_EQ(channel(sensor, "energy_j").scope, Scope::gpu);
  EXPECT_EQ(channel(sensor, "energy_j").range, std::nullopt);
  EXPECT_EQ(channel(sensor, "energy_j").max_power_w, 500.0);

  auto& slow = *sensor_named(found, "gpu0-slow");
  const auto values = read_row(slow);
  EXPECT_EQ(values[column(slow, "memory_used_bytes")], 1073741824.0);
  EXPECT_EQ(values[column(slow, "gpu_clock_hz")], 1.7e9);
  EXPECT_EQ(values[column(slow, "junction_temperature_celsius")], 52.0);
  EXPECT_EQ(values[column(slow, "power_limit_w")], 450.0);
  EXPECT_FALSE(channel(slow, "power_limit_w").method) << "a limit gives no energy";
}

TEST(Amdgpu, EitherPowerFileMayBeAbsent) {
  AmdTree tree;
  tree.card(0, "0000:03:00.0");
  std::filesystem::remove(tree / (tree.monitor(0) + "power1_average"));
  {
    const auto found = tree.discover();
    auto& sensor = *sensor_named(found, "gpu0");
    EXPECT_EQ(read_row(sensor)[column(sensor, "socket_power_w")], 300.0) << "from the table then";
  }
  tree.write(tree.monitor(0) + "power1_input", "900\n");
  const auto found = tree.discover();
  auto& sensor = *sensor_named(found, "gpu0");
  EXPECT_EQ(read_row(sensor)[column(sensor, "power_input_w")], 0.0009) << "always microwatts";
  EXPECT_EQ(channel(sensor, "power_input_w").method, Method::integral);
}

TEST(Amdgpu, UnknownRevisionIsAnAbsenceWithItsNumber) {
  AmdTree tree;
  tree.card(0, "0000:03:00.0");
  auto bytes = metrics_v1(3);
  bytes[3] = 77;
  tree.write(tree.folder(0) + "gpu_metrics", bytes);
  tree.write(tree.folder(0) + "gpu_busy_percent", "63\n");
  tree.write(tree.folder(0) + "mem_busy_percent", "101\n");
  const auto found = tree.discover();
  ASSERT_EQ(found.node.absences.size(), 1u);
  EXPECT_THAT(found.node.absences[0].reason, HasSubstr("1.77"));
  auto& sensor = *sensor_named(found, "gpu0");
  EXPECT_EQ(sensor.info().channels.size(), 1u) << "power alone";
  EXPECT_EQ(read_row(sensor)[0], 285.0);
  auto& slow = *sensor_named(found, "gpu0-slow");
  Readings out;
  const auto values = read_row(slow, out);
  EXPECT_EQ(values[column(slow, "gpu_active_ratio")], 0.63);
  EXPECT_EQ(values[column(slow, "memory_active_ratio")], std::nullopt) << "101 % cannot be";
  EXPECT_EQ(count_events(out, "rejected"), 1u);
}

TEST(Amdgpu, CounterThatFreezesIsNoticed) {
  AmdTree tree;
  tree.card(0, "0000:03:00.0");
  const auto found = tree.discover();
  auto& sensor = *sensor_named(found, "gpu0");
  const auto energy = column(sensor, "energy_j");
  Readings out;
  EXPECT_EQ(read_row(sensor, out)[energy], 10.0);
  for (int i = 1; i <= 50; ++i) {
    tree.clock->mono += 100'000'000;
    EXPECT_EQ(read_row(sensor, out)[energy], std::nullopt) << "nothing new";
  }
  EXPECT_EQ(count_events(out, "stuck"), 1u);
  tree.write(tree.folder(0) + "gpu_metrics", metrics_v1(3, {655360 * 2}));
  EXPECT_EQ(read_row(sensor, out)[energy], 20.0);
  EXPECT_EQ(count_events(out, "back"), 1u);
}

TEST(Amdgpu, CounterThatStepsBackIsNoticed) {
  AmdTree tree;
  tree.card(0, "0000:03:00.0");
  const auto found = tree.discover();
  auto& sensor = *sensor_named(found, "gpu0");
  Readings out;
  (void)read_row(sensor, out);
  tree.write(tree.folder(0) + "gpu_metrics", metrics_v1(3, {65536}));
  EXPECT_EQ(read_row(sensor, out)[column(sensor, "energy_j")], 1.0);
  EXPECT_EQ(count_events(out, "reset"), 1u);
}

TEST(Amdgpu, NarrowCounterWraps) {
  AmdTree tree;
  tree.card(0, "0000:03:00.0");
  tree.write(tree.folder(0) + "gpu_metrics", metrics_v1(0, {0xfffffff0u}));
  const auto found = tree.discover();
  auto& sensor = *sensor_named(found, "gpu0");
  EXPECT_EQ(channel(sensor, "energy_j").range, 65536.0) << "2^32 ticks";
  Readings out;
  (void)read_row(sensor, out);
  tree.write(tree.folder(0) + "gpu_metrics", metrics_v1(0, {16}));
  (void)read_row(sensor, out);
  EXPECT_EQ(count_events(out, "reset"), 0u);
}

TEST(Amdgpu, NoPowerIsNoFreeze) {
  amdgpu::CounterWatch watch;
  Readings out;
  const MonoTime start = mono_ns(0);
  EXPECT_EQ(watch.take(65536, 64, 0.0, start, "card", out), 1.0);
  EXPECT_EQ(watch.take(65536, 64, 0.0, start + 10s, "card", out), 1.0) << "a measured zero";
  EXPECT_EQ(watch.take(65536, 64, std::nullopt, start + 20s, "card", out), 1.0);
  EXPECT_TRUE(out.events.empty());
}

TEST(Amdgpu, SecondDieHasNoMeter) {
  AmdTree tree;
  tree.card(0, "0000:03:00.0", "1");
  tree.card(1, "0000:04:00.0", "2");
  tree.write(tree.folder(1) + "gpu_metrics", metrics_v1(3, {0, 0, 50, 20}));
  tree.write(tree.monitor(1) + "power1_average", "0\n");
  const auto found = tree.discover();
  ASSERT_EQ(found.node.gpus.size(), 2u);
  EXPECT_EQ(found.node.gpus[0].state, "ok");
  EXPECT_EQ(found.node.gpus[1].state, "part");
  for (const auto& sensor : found.sensors) {
    for (const auto& c : sensor->info().channels) EXPECT_FALSE(c.domain == "gpu/1" && c.method) << c.column;
  }
}

TEST(Amdgpu, ProcessorGraphicsStayOutOfTheTotal) {
  AmdTree tree;
  tree.card(0, "0000:c4:00.0", "");
  auto bytes = metrics_v1(3);
  bytes[2] = 2;
  tree.write(tree.folder(0) + "gpu_metrics", bytes);
  const auto found = tree.discover();
  EXPECT_EQ(found.node.gpus[0].uuid, "PCI-0000:c4:00.0") << "without a unique id the bus id names it";
  EXPECT_FALSE(channel(*sensor_named(found, "gpu0"), "power_average_w").in_total);
}

TEST(Amdgpu, ForbiddenGarbageAndVanishing) {
  AmdTree tree;
  tree.card(0, "0000:03:00.0");
  const auto found = tree.discover();
  auto& sensor = *sensor_named(found, "gpu0");
  Readings out;
  (void)read_row(sensor, out);
  tree.write(tree.folder(0) + "gpu_metrics", "x");
  auto row = read_row(sensor, out);
  EXPECT_EQ(row[column(sensor, "power_average_w")], 285.0);
  EXPECT_EQ(row[column(sensor, "energy_j")], std::nullopt);
  EXPECT_EQ(count_events(out, "rejected"), 1u);
  tree.write(tree.folder(0) + "gpu_metrics", std::string(5000, 'x'));
  (void)read_row(sensor, out);
  std::filesystem::remove_all(tree / tree.folder(0));
  out.rows.clear();
  EXPECT_FALSE(sensor.read(out)) << "the card is gone";
  EXPECT_GE(count_events(out, "lost"), 1u);

  AmdTree empty;
  EXPECT_EQ(empty.discover().node.absences.size(), 1u);
  AmdTree other;
  other.write("/sys/class/drm/card0/device/uevent", "DRIVER=i915\nPCI_SLOT_NAME=0000:00:02.0\n");
  other.write("/sys/class/drm/card1/device/uevent", "DRIVER=amdgpu\nMODALIAS=platform:amdgpu_xcp\n");
  EXPECT_TRUE(other.discover().node.gpus.empty()) << "a partition has no bus id of its own";
}

// --- Visibility ----------------------------------------------------------------------------------------------------

std::vector<std::optional<int>> ordinals(const Discovery& found) {
  std::vector<std::optional<int>> out;
  for (const auto& gpu : found.node.gpus) out.push_back(gpu.visible ? gpu.ordinal : std::nullopt);
  return out;
}

TEST(Amdgpu, VisibleDevicesInTheRuntimesOrder) {
  AmdTree tree;
  tree.card(0, "0000:03:00.0", "aa");
  tree.card(1, "0000:83:00.0", "bb");
  tree.node(0, 0, 0);       // a processor
  tree.node(1, 0x83 << 8);  // the runtime lists the second card first
  tree.node(2, 0x03 << 8);
  const std::optional<int> none;
  EXPECT_THAT(ordinals(tree.discover()), ElementsAre(1, 0));
  EXPECT_THAT(ordinals(tree.discover({{"ROCR_VISIBLE_DEVICES", "0"}})), ElementsAre(none, 0));
  EXPECT_THAT(ordinals(tree.discover({{"ROCR_VISIBLE_DEVICES", "GPU-AA"}})), ElementsAre(0, none));
  EXPECT_THAT(ordinals(tree.discover({{"HIP_VISIBLE_DEVICES", "1,0"}})), ElementsAre(0, 1));
  EXPECT_THAT(ordinals(tree.discover({{"ROCR_VISIBLE_DEVICES", "1"}, {"HIP_VISIBLE_DEVICES", "0"}})),
              ElementsAre(0, none))
      << "the second list counts in what the first left";
  EXPECT_THAT(ordinals(tree.discover({{"CUDA_VISIBLE_DEVICES", "1"}})), ElementsAre(0, none));
  EXPECT_THAT(ordinals(tree.discover({{"HIP_VISIBLE_DEVICES", "1"}, {"CUDA_VISIBLE_DEVICES", "0"}})),
              ElementsAre(0, none));
  tree.write("/sys/module/nvidia/version", "580\n");
  EXPECT_THAT(ordinals(tree.discover({{"CUDA_VISIBLE_DEVICES", "1"}})), ElementsAre(1, 0)) << "NVIDIA's variable";
}

TEST(Amdgpu, CardsOfAllRanksAreVisible) {
  AmdTree tree;
  tree.card(0, "0000:03:00.0", "aa");
  tree.card(1, "0000:83:00.0", "bb");
  tree.card(2, "0000:a3:00.0", "cc");
  tree.node(1, 0x03 << 8);
  tree.node(2, 0x83 << 8);
  tree.node(3, 0xa3 << 8);
  const auto found = tree.discover({{"ROCR_VISIBLE_DEVICES", "0"}}, {{{"ROCR_VISIBLE_DEVICES", "1"}}});
  EXPECT_TRUE(found.node.gpus[0].visible);
  EXPECT_TRUE(found.node.gpus[1].visible);
  EXPECT_FALSE(found.node.gpus[2].visible);
  const auto crossed = tree.discover({{"ROCR_VISIBLE_DEVICES", "0,1"}}, {{{"ROCR_VISIBLE_DEVICES", "1,0"}}});
  EXPECT_FALSE(crossed.node.gpus[0].ordinal) << "0 in one rank, 1 in the other";
}

TEST(Amdgpu, UnknownVisibilityCountsAllWithANote) {
  AmdTree tree;
  tree.card(0, "0000:03:00.0", "aa");
  tree.card(1, "0000:83:00.0", "bb");
  for (const char* value : {"0", "7", "", "-1", "0,0", "GPU-cc", "GPU-aa,x"}) {
    const auto found = tree.discover({{"ROCR_VISIBLE_DEVICES", value}});
    ASSERT_EQ(found.warnings.size(), 1u) << value;
    EXPECT_EQ(found.warnings[0].code, "gpu-visibility-unknown");
    for (const auto& gpu : found.node.gpus) {
      EXPECT_TRUE(gpu.visible) << value;
      EXPECT_FALSE(gpu.ordinal) << value;
      EXPECT_FALSE(gpu.note.empty()) << value;
    }
  }
}

}  // namespace
}  // namespace ergometer::test
