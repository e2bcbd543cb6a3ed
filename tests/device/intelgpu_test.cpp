#include "device/intelgpu/intelgpu.hpp"

#include <gmock/gmock.h>

#include "device/fake_tree.hpp"
#include "device/intelgpu/visibility.hpp"

namespace ergometer::test {
namespace {

using testing::ElementsAre;

struct IntelTree : FakeTree {
  void card(int number, const std::string& driver, const std::string& bus_id) const {
    write(folder(number) + "uevent", fmt::format("DRIVER={}\nPCI_ID=8086:0BD5\nPCI_SLOT_NAME={}\n", driver, bus_id));
  }
  std::string folder(int number) const { return fmt::format("/sys/class/drm/card{}/device/", number); }
  void monitor(int number, const std::string& hwmon, const std::string& name) const {
    write(folder(number) + "hwmon/" + hwmon + "/name", name + "\n");
  }
  void file(int number, const std::string& name, const std::string& value) const {
    write(folder(number) + "hwmon/" + name, value + "\n");
  }
  Discovery discover(const Environment& environment = {}, const std::vector<Environment>& other_ranks = {}) const {
    Discovery out;
    DiscoverOptions options;
    options.environment = environment;
    options.other_ranks = other_ranks;
    discover_intelgpu(host(), options, out);
    return out;
  }
};

TEST(Intelgpu, CardAndTilesOfI915) {
  IntelTree tree;
  tree.card(0, "i915", "0000:00:02.0");  // inside the processor: no meter of its own
  tree.card(1, "i915", "0000:4d:00.0");
  tree.monitor(1, "hwmon5", "i915");
  tree.file(1, "hwmon5/energy1_input", "123000000");
  tree.file(1, "hwmon5/power1_max", "300000000");
  tree.file(1, "hwmon5/power1_rated_max", "600000000");
  tree.monitor(1, "hwmon6", "i915_gt0");
  tree.file(1, "hwmon6/energy1_input", "50000000");
  tree.monitor(1, "hwmon7", "i915_gt1");
  tree.file(1, "hwmon7/energy1_input", "40000000");
  tree.write("/sys/class/drm/card1/gt/gt0/rps_act_freq_mhz", "1500\n");
  const auto found = tree.discover();
  ASSERT_EQ(found.node.gpus.size(), 1u);
  const auto& gpu = found.node.gpus[0];
  EXPECT_EQ(gpu.index, 0);
  EXPECT_EQ(gpu.uuid, "PCI-0000:4d:00.0");
  EXPECT_EQ(gpu.power_limit_w, 300.0);
  EXPECT_EQ(gpu.default_power_limit_w, 600.0);
  auto& sensor = *sensor_named(found, "gpu0");
  const auto row = read_row(sensor);
  EXPECT_EQ(row[column(sensor, "energy_j")], 123.0);
  EXPECT_EQ(row[column(sensor, "gt0_energy_j")], 50.0);
  EXPECT_EQ(row[column(sensor, "gt1_energy_j")], 40.0);
  EXPECT_TRUE(channel(sensor, "energy_j").in_total);
  EXPECT_EQ(channel(sensor, "energy_j").domain, "gpu/0");
  EXPECT_FALSE(channel(sensor, "gt0_energy_j").in_total) << "inside the card";
  EXPECT_EQ(channel(sensor, "gt1_energy_j").domain, "gpu/0/gt1");
  auto& slow = *sensor_named(found, "gpu0-slow");
  EXPECT_EQ(read_row(slow)[column(slow, "gpu_clock_hz")], 1.5e9);
}

TEST(Intelgpu, CardAndPackageOfXe) {
  IntelTree tree;
  tree.card(0, "xe", "0000:03:00.0");
  tree.monitor(0, "hwmon2", "xe");
  tree.file(0, "hwmon2/energy1_input", "9000000");
  tree.file(0, "hwmon2/energy2_input", "7000000");
  tree.file(0, "hwmon2/power1_max", "0");
  tree.file(0, "hwmon2/temp2_input", "51000");
  {
    const auto found = tree.discover();
    EXPECT_EQ(found.node.gpus[0].power_limit_w, std::nullopt) << "0 switches the limit off";
    auto& sensor = *sensor_named(found, "gpu0");
    EXPECT_EQ(read_row(sensor)[column(sensor, "energy_j")], 9.0);
    EXPECT_FALSE(channel(sensor, "package_energy_j").in_total);
  }
  std::filesystem::remove(tree / (tree.folder(0) + "hwmon/hwmon2/energy1_input"));
  const auto found = tree.discover();
  auto& sensor = *sensor_named(found, "gpu0");
  EXPECT_EQ(read_row(sensor)[column(sensor, "package_energy_j")], 7.0);
  EXPECT_TRUE(channel(sensor, "package_energy_j").in_total) << "better than nothing, and noted";
  EXPECT_FALSE(channel(sensor, "package_energy_j").note.empty());
}

TEST(Intelgpu, NoCounterIsNotMeasurable) {
  IntelTree tree;
  tree.card(0, "i915", "0000:03:00.0");
  const auto found = tree.discover();
  ASSERT_EQ(found.node.gpus.size(), 1u);
  EXPECT_EQ(found.node.gpus[0].state, "not measurable");
  EXPECT_EQ(found.node.absences.size(), 1u);
  EXPECT_TRUE(found.sensors.empty());
}

TEST(Intelgpu, VanishesAndReturns) {
  IntelTree tree;
  tree.card(0, "xe", "0000:03:00.0");
  tree.monitor(0, "hwmon2", "xe");
  tree.file(0, "hwmon2/energy1_input", "9000000");
  const auto found = tree.discover();
  auto& sensor = *sensor_named(found, "gpu0");
  Readings out;
  tree.file(0, "hwmon2/energy1_input", "-5");
  EXPECT_EQ(read_row(sensor, out)[0], std::nullopt) << "energy below zero cannot be";
  std::filesystem::remove(tree / (tree.folder(0) + "hwmon/hwmon2/energy1_input"));
  out.rows.clear();
  EXPECT_FALSE(sensor.read(out));
  EXPECT_EQ(count_events(out, "lost"), 1u);
  tree.file(0, "hwmon2/energy1_input", "10000000");
  EXPECT_EQ(read_row(sensor, out)[0], 10.0);
  EXPECT_EQ(count_events(out, "back"), 1u);
}

// --- Visibility ----------------------------------------------------------------------------------------------------

using intelgpu::resolve_visibility;

TEST(Intelgpu, AffinityMaskOfOneCard) {
  EXPECT_THAT(resolve_visibility({}, 1, false).visible, ElementsAre(true));
  EXPECT_THAT(resolve_visibility({{"ZE_AFFINITY_MASK", "0"}}, 1, false).visible, ElementsAre(true));
  EXPECT_THAT(resolve_visibility({{"ZE_AFFINITY_MASK", "1"}}, 1, false).visible, ElementsAre(false));
  EXPECT_THAT(resolve_visibility({{"ZE_AFFINITY_MASK", "0.1"}}, 1, false).visible, ElementsAre(true)) << "a part of it";
}

TEST(Intelgpu, NumbersNeedAKnownOrder) {
  const auto unknown = resolve_visibility({{"ZE_AFFINITY_MASK", "1"}}, 2, false);
  EXPECT_THAT(unknown.visible, ElementsAre(true, true));
  ASSERT_TRUE(unknown.unknown);
  const Environment pci{{"ZE_AFFINITY_MASK", "1"}, {"ZE_ENABLE_PCI_ID_DEVICE_ORDER", "1"}};
  EXPECT_THAT(resolve_visibility(pci, 2, false).visible, ElementsAre(false, true));
  EXPECT_TRUE(resolve_visibility(pci, 2, true).unknown) << "tiles may count as devices";
  auto composite = pci;
  composite["ZE_FLAT_DEVICE_HIERARCHY"] = "COMPOSITE";
  EXPECT_THAT(resolve_visibility(composite, 2, true).visible, ElementsAre(false, true));
}

TEST(Intelgpu, DeviceSelector) {
  const auto with = [](const char* value) { return resolve_visibility({{"ONEAPI_DEVICE_SELECTOR", value}}, 1, false); };
  EXPECT_THAT(with("level_zero:gpu").visible, ElementsAre(true));
  EXPECT_THAT(with("level_zero:0").visible, ElementsAre(true));
  EXPECT_THAT(with("level_zero:1").visible, ElementsAre(false));
  EXPECT_THAT(with("opencl:cpu").visible, ElementsAre(false));
  EXPECT_THAT(with("cuda:*").visible, ElementsAre(false));
  EXPECT_THAT(with("opencl:cpu;level_zero:*").visible, ElementsAre(true));
  for (const char* value : {"!opencl:cpu", "opencl:0", "nonsense", "level_zero:x", "vulkan:gpu"}) {
    EXPECT_THAT(with(value).visible, ElementsAre(true)) << value;
    EXPECT_TRUE(with(value).unknown) << value;
  }
}

TEST(Intelgpu, UnknownVisibilityIsNoted) {
  IntelTree tree;
  tree.card(0, "xe", "0000:03:00.0");
  tree.monitor(0, "hwmon2", "xe");
  tree.file(0, "hwmon2/energy1_input", "9000000");
  const auto found = tree.discover({{"ONEAPI_DEVICE_SELECTOR", "opencl:1"}});
  EXPECT_TRUE(found.node.gpus[0].visible);
  EXPECT_FALSE(found.node.gpus[0].note.empty());
  EXPECT_EQ(found.warnings.size(), 1u);
  EXPECT_FALSE(tree.discover({{"ZE_AFFINITY_MASK", "5"}}).node.gpus[0].visible);
  EXPECT_TRUE(tree.discover({{"ZE_AFFINITY_MASK", "5"}}, {{{"ZE_AFFINITY_MASK", "0"}}}).node.gpus[0].visible)
      << "another rank uses it";
}

}  // namespace
}  // namespace ergometer::test
