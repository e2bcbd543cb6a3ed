// The hwmon backend over fake chips.
#include "device/hwmon/hwmon.hpp"

#include "device/fake_tree.hpp"

namespace ergometer::test {
namespace {

using namespace std::chrono_literals;

Discovery discover(const FakeTree& tree) {
  Discovery found;
  discover_hwmon(tree.host(), {}, found);
  return found;
}

TEST(Hwmon, F10_AlwaysMicrowatts) {
  FakeTree tree;
  const std::vector<std::pair<std::string, double>> chips{{"900", 0.0009}, {"450000", 0.45}, {"285000000", 285}};
  for (std::size_t i = 0; i < chips.size(); ++i) {
    const auto folder = fmt::format("/sys/class/hwmon/hwmon{}/", i);
    tree.write(folder + "name", fmt::format("chip{}\n", i));
    tree.write(folder + "power1_input", chips[i].first + "\n");
    tree.write(folder + "power1_cap", "1000000000\n");
  }
  const auto found = discover(tree);
  ASSERT_EQ(found.sensors.size(), 3u);
  for (std::size_t i = 0; i < chips.size(); ++i) {
    auto& sensor = *sensor_named(found, fmt::format("hwmon-chip{}", i));
    EXPECT_EQ(read_row(sensor)[0], chips[i].second);
    const auto& power = channel(sensor, "power1_input_w");
    EXPECT_EQ(power.max_power_w, 1000.0);
    EXPECT_FALSE(power.in_total) << "nobody knows what an unknown chip measures";
  }
}

TEST(Hwmon, AcpiNodeMeter) {
  FakeTree tree;
  tree.write("/sys/class/hwmon/hwmon3/name", "power_meter\n");
  tree.write("/sys/class/hwmon/hwmon3/device/power1_average", "412000000\n");
  tree.write("/sys/class/hwmon/hwmon3/device/power1_average_interval", "1000\n");
  const auto found = discover(tree);
  auto& meter = *sensor_named(found, "hwmon-power_meter");
  const auto& power = channel(meter, "power1_average_w");
  EXPECT_EQ(power.scope, Scope::node);
  EXPECT_EQ(power.domain, "node");
  EXPECT_EQ(power.method, Method::average);
  EXPECT_EQ(power.window, Nanos(1s));
  EXPECT_TRUE(power.in_total) << "the scope keeps it apart from its parts";
  EXPECT_EQ(meter.info().interval, Nanos(500ms));
  EXPECT_EQ(read_row(meter)[0], 412.0);
}

TEST(Hwmon, GraceHopperPartsAreTold) {
  FakeTree tree;
  const std::vector<std::string> kinds{"Module Power Socket 0", "Grace Power Socket 0", "CPU Power Socket 0",
                                       "SysIO Power Socket 0", "Grace Power Socket 1"};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto folder = fmt::format("/sys/class/hwmon/hwmon{}/", i);
    tree.write(folder + "name", "power_meter\n");
    tree.write(folder + "device/power1_average", fmt::format("{}000000\n", 100 * (i + 1)));
    tree.write(folder + "device/power1_average_interval", "50\n");
    tree.write(folder + "device/power1_oem_info", kinds[i] + "\n");
  }
  const auto found = discover(tree);
  ASSERT_EQ(found.sensors.size(), 1u);
  auto& grace = *sensor_named(found, "hwmon-grace");
  const auto row = read_row(grace);
  EXPECT_EQ(row[column(grace, "module_0_power_w")], 100.0);
  EXPECT_EQ(row[column(grace, "package_0_power_w")], 200.0);
  EXPECT_EQ(row[column(grace, "package_1_power_w")], 500.0);
  double total = 0;
  for (std::size_t i = 0; i < row.size(); ++i)
    if (grace.info().channels[i].in_total) total += row[i].value();
  EXPECT_EQ(total, 700.0) << "packages alone: the module contains them, the rails are inside";
  EXPECT_EQ(channel(grace, "module_0_power_w").scope, Scope::module);
  EXPECT_EQ(channel(grace, "core_0_power_w").scope, Scope::core);
  EXPECT_EQ(channel(grace, "sysio_0_power_w").scope, Scope::rail);
  EXPECT_EQ(channel(grace, "package_0_power_w").window, Nanos(50ms));
  EXPECT_EQ(grace.info().interval, Nanos(100ms));
}

TEST(Hwmon, GraphicsCardAndEnergyCounter) {
  FakeTree tree;
  tree.write("/sys/class/hwmon/hwmon0/name", "nouveau\n");
  tree.write("/sys/class/hwmon/hwmon0/energy1_input", "5000000\n");
  std::filesystem::create_directories(tree / "/sys/class/hwmon/hwmon0/device/drm/card1");
  const auto found = discover(tree);
  auto& card = *sensor_named(found, "hwmon-nouveau");
  const auto& energy = channel(card, "energy1_input_j");
  EXPECT_EQ(energy.domain, "gpu-card/1");
  EXPECT_EQ(energy.method, Method::counter);
  EXPECT_FALSE(energy.in_total);
  EXPECT_EQ(read_row(card)[0], 5.0);
}

TEST(Hwmon, LeavesChipsToTheirOwnBackends) {
  FakeTree tree;
  int n = 0;
  for (const char* name : {"amdgpu", "i915", "i915_gt0", "xe", "ina3221"}) {
    const auto folder = fmt::format("/sys/class/hwmon/hwmon{}/", n++);
    tree.write(folder + "name", std::string(name) + "\n");
    tree.write(folder + "power1_input", "1000000\n");
    tree.write(folder + "energy1_input", "1000000\n");
  }
  EXPECT_TRUE(discover(tree).sensors.empty());
}

TEST(Hwmon, NumbersOfFoldersDoNotName) {
  FakeTree tree;
  // Two cards of one kind whose hwmon numbers are against the order of their devices.
  for (const auto& [entry, device, watts] : {std::tuple("hwmon0", "b", 2), {"hwmon1", "a", 1}}) {
    tree.write(fmt::format("/sys/devices/{}/uevent", device), "");
    const auto folder = fmt::format("/sys/class/hwmon/{}/", entry);
    tree.write(folder + "name", "twin\n");
    tree.write(folder + "power1_input", fmt::format("{}000000\n", watts));
    std::filesystem::create_symlink(tree / fmt::format("/sys/devices/{}", device), tree / (folder + "device"));
  }
  const auto found = discover(tree);
  EXPECT_EQ(read_row(*sensor_named(found, "hwmon-twin"))[0], 1.0);
  EXPECT_EQ(read_row(*sensor_named(found, "hwmon-twin-2"))[0], 2.0);
}

TEST(Hwmon, BadAndVanishingFiles) {
  FakeTree tree;
  tree.write("/sys/class/hwmon/hwmon0/name", "chip\n");
  tree.write("/sys/class/hwmon/hwmon0/power1_input", "1000000\n");
  tree.write("/sys/class/hwmon/hwmon0/power2_input", "2000000\n");
  tree.write("/sys/class/hwmon/hwmon0/power3_input", "no power\n");
  std::filesystem::create_directories(tree / "/sys/class/hwmon/hwmon0/power4_input");
  tree.write("/sys/class/hwmon/hwmon1/name", "nvme\n");
  tree.write("/sys/class/hwmon/hwmon1/temp1_input", "40000\n");
  tree.write("/sys/class/hwmon/hwmon2/power1_input", "1\n");  // no name
  const auto found = discover(tree);
  ASSERT_EQ(found.sensors.size(), 1u);
  EXPECT_EQ(found.node.absences.size(), 2u);
  auto& chip = *found.sensors[0];
  Readings out;
  tree.write("/sys/class/hwmon/hwmon0/power1_input", "");
  std::filesystem::remove(tree / "/sys/class/hwmon/hwmon0/power2_input");
  EXPECT_FALSE(chip.read(out)) << "nothing could be read";
  EXPECT_EQ(count_events(out, "rejected"), 1u);
  EXPECT_EQ(count_events(out, "lost"), 1u);
  tree.write("/sys/class/hwmon/hwmon0/power1_input", "7000000\n");
  const auto row = read_row(chip, out);
  EXPECT_EQ(row[0], 7.0);
  EXPECT_EQ(row[1], std::nullopt);
}

TEST(Hwmon, F15_NoFolderIsAnAbsenceAlone) {
  FakeTree tree;
  const auto found = discover(tree);
  EXPECT_TRUE(found.sensors.empty());
  EXPECT_TRUE(found.warnings.empty());
  EXPECT_EQ(found.node.absences.size(), 1u);
}

}  // namespace
}  // namespace ergometer::test
