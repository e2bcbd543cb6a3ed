#include "device/jetson/jetson.hpp"

#include <gmock/gmock.h>

#include "device/fake_tree.hpp"

namespace ergometer::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct JetsonTree : FakeTree {
  void rail(int hwmon, int k, const std::string& name, int millivolts, int milliamperes) const {
    const auto folder = fmt::format("/sys/class/hwmon/hwmon{}/", hwmon);
    write(folder + "name", "ina3221\n");
    write(folder + fmt::format("in{}_label", k), name + "\n");
    write(folder + fmt::format("in{}_enable", k), "1\n");
    write(folder + fmt::format("in{}_input", k), fmt::format("{}\n", millivolts));
    write(folder + fmt::format("curr{}_input", k), fmt::format("{}\n", milliamperes));
  }
  Discovery discover() const {
    Discovery out;
    discover_jetson(host(), {}, out);
    return out;
  }
};

TEST(Jetson, ModuleTotalAndRails) {
  JetsonTree tree;
  tree.rail(1, 1, "VDD_IN", 5000, 2000);
  tree.rail(1, 2, "VDD_CPU_GPU_CV", 5000, 800);
  tree.rail(1, 3, "VDD_SOC", 5000, 400);
  tree.write("/sys/class/hwmon/hwmon1/in7_label", "sum of shunt voltages\n");
  tree.write("/sys/class/hwmon/hwmon1/samples", "64\n");
  tree.write("/sys/class/hwmon/hwmon1/update_interval", "420\n");
  const auto found = tree.discover();
  ASSERT_EQ(found.sensors.size(), 1u);
  auto& sensor = *found.sensors[0];
  ASSERT_EQ(sensor.info().channels.size(), 3u) << "the sum of shunts is no rail";
  const auto row = read_row(sensor);
  EXPECT_EQ(row[column(sensor, "vdd_in_power_w")], 10.0) << "mV times mA are microwatts";
  EXPECT_EQ(row[column(sensor, "vdd_cpu_gpu_cv_power_w")], 4.0);
  const auto& module = channel(sensor, "vdd_in_power_w");
  EXPECT_TRUE(module.in_total);
  EXPECT_EQ(module.scope, Scope::module);
  EXPECT_EQ(module.window, Nanos(420ms));
  EXPECT_EQ(module.method, Method::average);
  EXPECT_THAT(module.note, HasSubstr("64"));
  EXPECT_FALSE(channel(sensor, "vdd_soc_power_w").in_total) << "inside the module";
  EXPECT_EQ(channel(sensor, "vdd_soc_power_w").scope, Scope::rail);
  EXPECT_EQ(sensor.info().interval, Nanos(210ms));
}

TEST(Jetson, RailsWithoutATotalAreNotAdded) {
  JetsonTree tree;
  tree.rail(1, 1, "VDD_GPU_SOC", 20000, 300);
  tree.rail(1, 2, "VDD_CPU_CV", 20000, 200);
  tree.rail(1, 3, "NC", 0, 0);
  const auto found = tree.discover();
  ASSERT_EQ(found.sensors[0]->info().channels.size(), 2u);
  for (const auto& c : found.sensors[0]->info().channels) EXPECT_FALSE(c.in_total);
  ASSERT_EQ(found.node.absences.size(), 1u);
  EXPECT_THAT(found.node.absences[0].what, HasSubstr("module"));
}

TEST(Jetson, OlderDriverTellsMilliwatts) {
  JetsonTree tree;
  const std::string folder = "/sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0/";
  tree.write(folder + "rail_name_0", "POM_5V_IN\n");
  tree.write(folder + "in_power0_input", "2345\n");
  tree.write(folder + "rail_name_1", "POM_5V_GPU\n");
  tree.write(folder + "in_power1_input", "120\n");
  const auto found = tree.discover();
  auto& sensor = *found.sensors[0];
  const auto row = read_row(sensor);
  EXPECT_EQ(row[column(sensor, "pom_5v_in_power_w")], 2.345);
  EXPECT_TRUE(channel(sensor, "pom_5v_in_power_w").in_total);
  EXPECT_EQ(row[column(sensor, "pom_5v_gpu_power_w")], 0.12);
}

TEST(Jetson, SwitchedOffBrokenAndVanishing) {
  JetsonTree tree;
  tree.rail(1, 1, "VDD_IN", 5000, 2000);
  tree.rail(1, 2, "VDD_SOC", 5000, 100);
  tree.write("/sys/class/hwmon/hwmon1/in2_enable", "0\n");
  tree.rail(2, 1, "VDD_MEM", 5000, 100);
  tree.write("/sys/class/hwmon/hwmon2/curr1_input", "much\n");
  const auto found = tree.discover();
  auto& sensor = *found.sensors[0];
  EXPECT_EQ(sensor.info().channels.size(), 1u);
  EXPECT_EQ(found.node.absences.size(), 2u);
  Readings out;
  std::filesystem::remove(tree / "/sys/class/hwmon/hwmon1/curr1_input");
  EXPECT_FALSE(sensor.read(out));
  EXPECT_EQ(count_events(out, "lost"), 1u);
}

TEST(Jetson, OtherMachinesHaveNone) {
  JetsonTree tree;
  tree.write("/sys/class/hwmon/hwmon0/name", "coretemp\n");
  const auto found = tree.discover();
  EXPECT_TRUE(found.sensors.empty());
  EXPECT_EQ(found.node.absences.size(), 1u);
}

}  // namespace
}  // namespace ergometer::test
