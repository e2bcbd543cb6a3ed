// The cray backend over fake pm_counters.
#include "device/cray/cray.hpp"

#include "device/fake_tree.hpp"

namespace ergometer::test {
namespace {

using namespace std::chrono_literals;

const std::string kFolder = "/sys/cray/pm_counters/";

struct CrayTree : FakeTree {
  explicit CrayTree(bool ex, int sockets = 1) : ex_(ex) {
    std::string online = "0";
    for (int i = 0; i < sockets; ++i) topology(i, i, 0, 0);
    if (sockets > 1) online += fmt::format("-{}", sockets - 1);
    write("/sys/devices/system/cpu/online", online + "\n");
    write(kFolder + "raw_scan_hz", "10\n");
    write(kFolder + "startup", "1600000000\n");
    write(kFolder + "generation", "3\n");
    clock->offset = 1'700'000'000'000'000'000;
    scan(1, 500, 1000, 200, 0);
  }
  // One scan of the controller at `t_ns` on the monotonic clock.
  void scan(int freshness, int power, int energy, int cpu, std::int64_t t_ns) const {
    put("power", power, "W", t_ns);
    put("energy", energy, "J", t_ns);
    put("cpu_power", cpu, "W", t_ns);
    put("memory_power", 40, "W", t_ns);
    put("accel0_power", 90, "W", t_ns);
    write(kFolder + "freshness", fmt::format("{}\n", freshness));
  }

 private:
  void put(const std::string& name, int value, const char* unit, std::int64_t t_ns) const {
    write(kFolder + name, ex_ ? fmt::format("{} {} {} us\n", value, unit, (t_ns + clock->offset) / 1000)
                              : fmt::format("{} {}\n", value, unit));
  }
  bool ex_;
};

std::shared_ptr<Sensor> find(const FakeTree& tree) {
  Discovery found;
  discover_cray(tree.host(), {}, found);
  return sensor_named(found, "cray");
}

TEST(Cray, ExRowsCarryTheSensorsOwnTime) {
  CrayTree tree(true);
  const auto sensor = find(tree);
  ASSERT_TRUE(sensor->info().own_time);
  EXPECT_EQ(sensor->info().interval, Nanos(100ms));
  tree.scan(2, 510, 1051, 210, 900'000'000);
  Readings out;
  const auto row = read_row(*sensor, out);
  EXPECT_EQ(to_ns(out.rows[0].t), 900'000'000);
  EXPECT_EQ(row[column(*sensor, "node_power_w")], 510.0);
  EXPECT_EQ(row[column(*sensor, "node_energy_j")], 1051.0);
  EXPECT_EQ(channel(*sensor, "node_energy_j").scope, Scope::node);
  EXPECT_TRUE(channel(*sensor, "node_energy_j").in_total) << "the scope keeps it apart from its parts";
  EXPECT_EQ(channel(*sensor, "node_power_w").period, Nanos(100ms));
  // One socket: the same domain that RAPL has.
  EXPECT_EQ(channel(*sensor, "cpu_power_w").domain, "package/0");
  EXPECT_TRUE(channel(*sensor, "cpu_power_w").in_total);
  EXPECT_FALSE(channel(*sensor, "accel0_power_w").in_total);
}

TEST(Cray, NoNewScanNoRow) {
  CrayTree tree(false);
  const auto sensor = find(tree);
  EXPECT_FALSE(sensor->info().own_time);
  Readings out;
  EXPECT_EQ(read_row(*sensor, out)[0], 500.0);
  out.rows.clear();
  ASSERT_TRUE(sensor->read(out));
  EXPECT_TRUE(out.rows.empty());
  tree.scan(2, 510, 1051, 210, 0);
  EXPECT_EQ(read_row(*sensor, out)[0], 510.0);
}

TEST(Cray, RestartAndCapChangeAreEvents) {
  CrayTree tree(false);
  const auto sensor = find(tree);
  Readings out;
  read_row(*sensor, out);
  tree.write(kFolder + "generation", "4\n");
  tree.scan(2, 1, 1, 1, 0);
  read_row(*sensor, out);
  EXPECT_EQ(count_events(out, "control"), 1u);
  EXPECT_EQ(count_events(out, "reset"), 0u);
  tree.write(kFolder + "startup", "1600000999\n");
  tree.scan(3, 1, 1, 1, 0);
  read_row(*sensor, out);
  EXPECT_EQ(count_events(out, "reset"), 1u);
  EXPECT_EQ(count_events(out, "control"), 1u);
}

TEST(Cray, SeveralSocketsAreNotAddedToSingleOnes) {
  CrayTree tree(false, 2);
  const auto sensor = find(tree);
  EXPECT_EQ(channel(*sensor, "cpu_power_w").domain, "package/all");
  EXPECT_FALSE(channel(*sensor, "cpu_power_w").in_total);
}

TEST(Cray, BadFiles) {
  CrayTree tree(false);
  const auto sensor = find(tree);
  Readings out;
  tree.scan(2, 510, 1051, 210, 0);
  tree.write(kFolder + "power", "510 kW\n");
  std::filesystem::remove(tree / (kFolder + "energy"));
  const auto row = read_row(*sensor, out);
  EXPECT_EQ(row[column(*sensor, "node_power_w")], std::nullopt);
  EXPECT_EQ(row[column(*sensor, "node_energy_j")], std::nullopt);
  EXPECT_EQ(row[column(*sensor, "cpu_power_w")], 210.0);
  EXPECT_EQ(count_events(out, "rejected"), 1u);
  EXPECT_EQ(count_events(out, "lost"), 1u);
}

TEST(Cray, ElsewhereAnAbsence) {
  FakeTree tree;
  Discovery found;
  discover_cray(tree.host(), {}, found);
  EXPECT_TRUE(found.sensors.empty());
  EXPECT_EQ(found.node.absences.size(), 1u);
}

}  // namespace
}  // namespace ergometer::test
