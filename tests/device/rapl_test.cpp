// The rapl backend over fake powercap trees.
#include "device/rapl/rapl.hpp"

#include <sys/stat.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/fake_tree.hpp"

namespace ergometer::test {
namespace {

using namespace std::chrono_literals;

Discovery discover(const FakeTree& tree, DiscoverOptions options = {}) {
  Discovery found;
  discover_rapl(tree.host(), options, found);
  return found;
}

TEST(Rapl, F01_OneWrap) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 262140000000);
  const auto found = discover(tree);
  auto& rapl = *sensor_named(found, "rapl");
  const auto& package = channel(rapl, "package_0_energy_j");
  EXPECT_EQ(package.range, 262143.32885);
  EXPECT_EQ(package.behaviour, Behaviour::counter);
  EXPECT_EQ(package.domain, "package/0");
  EXPECT_NEAR(package.resolution.value(), 6.1035e-5, 1e-9);
  EXPECT_EQ(package.period, Nanos(1ms));
  const auto first = read_row(rapl);
  tree.energy("intel-rapl:0", 1000000);
  const auto second = read_row(rapl);
  // Raw on purpose: the wrap is undone in the analysis, with this channel's own range.
  EXPECT_EQ(first[0], 262140.0);
  EXPECT_EQ(second[0], 1.0);
  EXPECT_NEAR(*package.range - *first[0] + *second[0], 4.32885, 1e-6);
}

TEST(Rapl, F03_PollsWellWithinTheRange) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 60000000000, 65532610987);
  tree.write("/sys/class/powercap/intel-rapl:0/constraint_0_max_power_uw", "250000000\n");
  DiscoverOptions options;
  options.interval = 10min;
  const auto found = discover(tree, options);
  EXPECT_EQ(sensor_named(found, "rapl")->info().interval, from_seconds(65532.610987 / 250 / 4));
  EXPECT_EQ(sensor_named(discover(tree), "rapl")->info().interval, Nanos(100ms));
}

TEST(Rapl, F04_EachZoneHasItsOwnRange) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 1000000000);
  tree.powercap("intel-rapl:0:0", "dram", 65712000000, 65712999613);
  const auto found = discover(tree);
  auto& rapl = *sensor_named(found, "rapl");
  EXPECT_EQ(channel(rapl, "package_0_energy_j").range, 262143.32885);
  EXPECT_EQ(channel(rapl, "dram_0_energy_j").range, 65712.999613);
  tree.energy("intel-rapl:0:0", 10000000);
  EXPECT_EQ(read_row(rapl)[column(rapl, "dram_0_energy_j")], 10.0);
}

TEST(Rapl, F05_RecordsTheCounterAsItIs) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 100000000000);
  const auto found = discover(tree);
  auto& rapl = *sensor_named(found, "rapl");
  EXPECT_EQ(read_row(rapl)[0], 100000.0);
  tree.energy("intel-rapl:0", 200000000000);
  EXPECT_EQ(read_row(rapl)[0], 200000.0);
  tree.energy("intel-rapl:0", 37856671150);
  EXPECT_EQ(read_row(rapl)[0], 37856.67115);
}

// Gives up all capabilities: even for root, file modes then hold. Better than another user, who may not be able to
// reach the files at all.
bool obey_file_modes() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  return ::syscall(SYS_capset, &header, none) == 0;
}

TEST(Rapl, F15_ForbiddenIsSaidOnceAndOthersGoOn) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 5000000);
  tree.powercap("intel-rapl:0:0", "dram", 5000000);
  for (const char* id : {"intel-rapl:0", "intel-rapl:0:0"})
    ASSERT_EQ(::chmod((tree / fmt::format("/sys/class/powercap/{}/energy_uj", id)).c_str(), 0), 0);
  ASSERT_EQ(::chmod(tree.path().c_str(), 0755), 0);
  // To root nothing is forbidden, so the look is taken in a child without root's capabilities.
  const pid_t child = ::fork();
  if (child == 0) {
    if (!obey_file_modes()) ::_exit(99);
    Discovery found;
    discover_rapl(tree.host(), {}, found);
    int bad = 0;
    if (!found.sensors.empty()) bad |= 1;
    if (found.node.absences.size() != 1) bad |= 2;
    if (found.warnings.size() != 1) bad |= 4;
    if (bad == 0 && found.node.absences[0].reason.find("permission denied") == std::string::npos) bad |= 8;
    if (bad == 0 && found.warnings[0].remedy.find("chmod") == std::string::npos) bad |= 16;
    // One zone forbidden, one not: the other is read and the loss is said once as well.
    ::_exit(bad);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Rapl, F15_OneForbiddenZoneOfTwo) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 5000000);
  tree.powercap("intel-rapl:1", "package-1", 7000000);
  ASSERT_EQ(::chmod((tree / "/sys/class/powercap/intel-rapl:0/energy_uj").c_str(), 0), 0);
  ASSERT_EQ(::chmod(tree.path().c_str(), 0755), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (!obey_file_modes()) ::_exit(99);
    Discovery found;
    discover_rapl(tree.host(), {}, found);
    const bool good = found.sensors.size() == 1 && found.sensors[0]->info().channels.size() == 1 &&
                      found.sensors[0]->info().channels[0].domain == "package/1" && found.node.absences.size() == 1 &&
                      found.warnings.size() == 1;
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Rapl, F24_FallsBackToPowercap) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 1000000);
  const auto found = discover(tree);
  ASSERT_EQ(found.sensors.size(), 1u);
  auto& rapl = *found.sensors[0];
  EXPECT_EQ(rapl.info().interface, "rapl-powercap");
  EXPECT_NE(rapl.info().note.find("perf gives nothing"), std::string::npos) << rapl.info().note;
  EXPECT_TRUE(found.node.absences.empty());
  EXPECT_TRUE(found.warnings.empty());
  const auto first = read_row(rapl);
  tree.energy("intel-rapl:0", 78000000);
  EXPECT_DOUBLE_EQ(total_gain(rapl, first, read_row(rapl)), 77.0);
}

TEST(Rapl, F24_FallbackForbidden) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 1000000);
  DiscoverOptions options;
  options.only = {"rapl-perf"};
  const auto found = discover(tree, options);
  EXPECT_TRUE(found.sensors.empty());
  ASSERT_EQ(found.node.absences.size(), 1u);
  EXPECT_NE(found.node.absences[0].reason.find("event_source"), std::string::npos);
}

TEST(Rapl, F25_TheNameCountsNotTheNumber) {
  FakeTree tree;
  const std::vector<std::pair<std::string, double>> zones{
      {"package-0", 10}, {"psys", 50}, {"package-1", 12}, {"foo", 1}};
  for (std::size_t i = 0; i < zones.size(); ++i) tree.powercap(fmt::format("intel-rapl:{}", i), zones[i].first, 0);
  const auto found = discover(tree);
  auto& rapl = *sensor_named(found, "rapl");
  const auto first = read_row(rapl);
  for (std::size_t i = 0; i < zones.size(); ++i)
    tree.energy(fmt::format("intel-rapl:{}", i), static_cast<std::int64_t>(zones[i].second * 1e6));
  const auto last = read_row(rapl);
  EXPECT_DOUBLE_EQ(total_gain(rapl, first, last), 22.0);
  EXPECT_EQ(last[column(rapl, "psys_0_energy_j")], 50.0);
  EXPECT_EQ(channel(rapl, "package_1_energy_j").domain, "package/1");
  EXPECT_EQ(channel(rapl, "psys_0_energy_j").scope, Scope::psys);
  EXPECT_FALSE(channel(rapl, "rail_foo_energy_j").in_total);
  ASSERT_EQ(found.node.absences.size(), 1u);
  EXPECT_NE(found.node.absences[0].what.find("foo"), std::string::npos);
}

TEST(Rapl, F26_TwoDigitPackages) {
  FakeTree tree;
  for (int i = 0; i < 16; ++i) tree.powercap(fmt::format("intel-rapl:{}", i), fmt::format("package-{}", i), 0);
  const auto found = discover(tree);
  auto& rapl = *sensor_named(found, "rapl");
  ASSERT_EQ(rapl.info().channels.size(), 16u);
  const auto first = read_row(rapl);
  for (int i = 0; i < 16; ++i) tree.energy(fmt::format("intel-rapl:{}", i), 1000000);
  EXPECT_DOUBLE_EQ(total_gain(rapl, first, read_row(rapl)), 16.0);
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(channel(rapl, fmt::format("package_{}_energy_j", i)).domain, fmt::format("package/{}", i));
}

TEST(Rapl, F29_OnlyPackagesAreAdded) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 0);
  tree.powercap("intel-rapl:0:0", "core", 0);
  tree.powercap("intel-rapl:0:1", "uncore", 0);
  tree.powercap("intel-rapl:1", "psys", 0);
  const auto found = discover(tree);
  auto& rapl = *sensor_named(found, "rapl");
  const auto first = read_row(rapl);
  tree.energy("intel-rapl:0", 3780000);
  tree.energy("intel-rapl:0:0", 840000);
  tree.energy("intel-rapl:0:1", 210000);
  tree.energy("intel-rapl:1", 9610000);
  const auto last = read_row(rapl);
  EXPECT_DOUBLE_EQ(total_gain(rapl, first, last), 3.78);
  EXPECT_EQ(last[column(rapl, "psys_0_energy_j")], 9.61);
  EXPECT_EQ(channel(rapl, "core_0_energy_j").scope, Scope::core);
  EXPECT_EQ(channel(rapl, "uncore_0_energy_j").scope, Scope::uncore);
}

TEST(Rapl, MmioTwinIsListedAsDuplicate) {
  FakeTree tree;
  tree.powercap("intel-rapl-mmio:0", "package-0", 0);
  tree.powercap("intel-rapl:0", "package-0", 0);
  const auto found = discover(tree);
  auto& rapl = *sensor_named(found, "rapl");
  EXPECT_TRUE(channel(rapl, "package_0_energy_j").in_total);
  const auto& twin = channel(rapl, "mmio_package_0_energy_j");
  EXPECT_FALSE(twin.in_total);
  EXPECT_NE(twin.note.find("duplicate of intel-rapl:0"), std::string::npos) << twin.note;
}

TEST(Rapl, MmioAloneIsUsed) {
  FakeTree tree;
  tree.powercap("intel-rapl-mmio:0", "package-0", 0);
  const auto found = discover(tree);
  EXPECT_TRUE(channel(*sensor_named(found, "rapl"), "mmio_package_0_energy_j").in_total);
}

TEST(Rapl, F31_MirrorsOfOneSocketCollapse) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0-die-0", 1000000000);
  tree.powercap("intel-rapl:1", "package-0-die-1", 1000000000);
  const auto found = discover(tree);
  auto& rapl = *sensor_named(found, "rapl");
  ASSERT_EQ(rapl.info().channels.size(), 2u) << "the raw counters are both kept";
  const auto first = read_row(rapl);
  tree.energy("intel-rapl:0", 1068000000);
  tree.energy("intel-rapl:1", 1068000000);
  EXPECT_DOUBLE_EQ(total_gain(rapl, first, read_row(rapl)), 68.0);
  EXPECT_EQ(channel(rapl, "package_0_die_0_energy_j").domain, "package/0");
  EXPECT_NE(channel(rapl, "package_0_die_1_energy_j").note.find("mirror of package-0-die-0"), std::string::npos);
}

TEST(Rapl, F31_SeparateSocketsStay) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 1000000000);
  tree.powercap("intel-rapl:1", "package-1", 1000000000);
  const auto found = discover(tree);
  auto& rapl = *sensor_named(found, "rapl");
  const auto first = read_row(rapl);
  tree.energy("intel-rapl:0", 1068000000);
  tree.energy("intel-rapl:1", 1061000000);
  EXPECT_DOUBLE_EQ(total_gain(rapl, first, read_row(rapl)), 129.0);
}

TEST(Rapl, F31_DiesThatCountApartStay) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0-die-0", 1000000000);
  tree.powercap("intel-rapl:1", "package-0-die-1", 1700000000);
  const auto found = discover(tree);
  auto& rapl = *sensor_named(found, "rapl");
  const auto first = read_row(rapl);
  tree.energy("intel-rapl:0", 1068000000);
  tree.energy("intel-rapl:1", 1761000000);
  EXPECT_DOUBLE_EQ(total_gain(rapl, first, read_row(rapl)), 129.0);
  EXPECT_EQ(channel(rapl, "package_0_die_0_energy_j").domain, "package/0/die/0");
  EXPECT_EQ(channel(rapl, "package_0_die_1_energy_j").domain, "package/0/die/1");
}

TEST(Rapl, F32_DramIsBesideThePackage) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 0);
  tree.powercap("intel-rapl:0/intel-rapl:0:0", "dram", 0);  // nested only, as in a copied tree
  const auto found = discover(tree);
  auto& rapl = *sensor_named(found, "rapl");
  const auto first = read_row(rapl);
  tree.energy("intel-rapl:0", 100000000);
  tree.energy("intel-rapl:0/intel-rapl:0:0", 20000000);
  const auto last = read_row(rapl);
  EXPECT_EQ(last[column(rapl, "package_0_energy_j")], 100.0);
  EXPECT_EQ(last[column(rapl, "dram_0_energy_j")], 20.0);
  EXPECT_DOUBLE_EQ(total_gain(rapl, first, last), 120.0);
}

TEST(Rapl, F118_LimitsAbove31Bits) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 0, 262143999938);
  tree.write("/sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", "3408250000\n");
  const auto found = discover(tree);
  const auto& package = channel(*sensor_named(found, "rapl"), "package_0_energy_j");
  EXPECT_EQ(package.max_power_w, 3408.25);
  EXPECT_EQ(package.range, 262143.999938);
}

TEST(Rapl, F120_BoundFromTheZoneItself) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 0);
  tree.write("/sys/class/powercap/intel-rapl:0/constraint_0_max_power_uw", "6000000\n");
  const auto found = discover(tree);
  auto& rapl = *sensor_named(found, "rapl");
  EXPECT_EQ(channel(rapl, "package_0_energy_j").max_power_w, 6.0);
  tree.energy("intel-rapl:0", 4500000000);
  EXPECT_EQ(read_row(rapl)[0], 4500.0) << "recorded; the analysis flags it";
}

TEST(Rapl, BadFilesAreMissingValuesWithOneEvent) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 1000000);
  tree.powercap("intel-rapl:1", "package-1", 2000000);
  const auto found = discover(tree);
  auto& rapl = *sensor_named(found, "rapl");
  const auto file = "/sys/class/powercap/intel-rapl:1/energy_uj";
  for (const std::string& content :
       {std::string(), std::string(100000, '9'), std::string("nan\n"), std::string("12 34"),
        std::string("99999999999999999999999\n"), std::string("\0\0\0", 3)}) {
    Readings out;
    tree.write(file, content);
    for (int i = 0; i < 3; ++i) {
      const auto row = read_row(rapl, out);
      EXPECT_EQ(row[0], 1.0);
      EXPECT_EQ(row[1], std::nullopt) << content.substr(0, 20);
    }
    EXPECT_EQ(count_events(out, "rejected"), 1u) << content.substr(0, 20);
    tree.energy("intel-rapl:1", 2000000);
    EXPECT_EQ(read_row(rapl, out)[1], 2.0);
    EXPECT_EQ(count_events(out, "back"), 1u);
  }
}

TEST(Rapl, ZoneThatVanishesAndReturns) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 1000000);
  tree.powercap("intel-rapl:1", "package-1", 2000000);
  const auto found = discover(tree);
  auto& rapl = *sensor_named(found, "rapl");
  Readings out;
  EXPECT_EQ(read_row(rapl, out)[1], 2.0);
  std::filesystem::remove_all(tree / "/sys/class/powercap/intel-rapl:1");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read_row(rapl, out)[1], std::nullopt) << "never the last value again";
  EXPECT_EQ(count_events(out, "lost"), 1u);
  tree.powercap("intel-rapl:1", "package-1", 3000000);
  EXPECT_EQ(read_row(rapl, out)[1], 3.0);
  EXPECT_EQ(count_events(out, "back"), 1u);
  std::filesystem::remove_all(tree / "/sys/class/powercap");
  out.rows.clear();
  const auto result = rapl.read(out);
  ASSERT_FALSE(result);
  EXPECT_TRUE(out.rows.empty());
}

TEST(Rapl, BadZonesAtDiscoveryAreListed) {
  FakeTree tree;
  tree.powercap("intel-rapl:0", "package-0", 1000000);
  tree.powercap("intel-rapl:1", "package-1", 0);
  tree.write("/sys/class/powercap/intel-rapl:1/energy_uj", "much\n");
  tree.powercap("intel-rapl:2", "package-2", 0);
  std::filesystem::remove(tree / "/sys/class/powercap/intel-rapl:2/energy_uj");
  std::filesystem::create_directory(tree / "/sys/class/powercap/intel-rapl:2/energy_uj");
  tree.powercap("intel-rapl:3", "", 0);
  tree.powercap("intel-rapl:4", "package-99999999999999999999", 0);
  tree.write("/sys/class/powercap/intel-rapl:5/energy_uj", "1\n");  // no name at all
  const auto found = discover(tree);
  auto& rapl = *sensor_named(found, "rapl");
  EXPECT_DOUBLE_EQ(total_gain(rapl, read_row(rapl), read_row(rapl)), 0.0);
  EXPECT_EQ(std::ranges::count_if(rapl.info().channels, &Channel::in_total), 1);
  EXPECT_EQ(found.node.absences.size(), 5u);
}

TEST(Rapl, NothingThere) {
  FakeTree tree;
  const auto found = discover(tree);
  EXPECT_TRUE(found.sensors.empty());
  EXPECT_EQ(found.node.absences.size(), 1u);
  EXPECT_TRUE(found.warnings.empty());
}

}  // namespace
}  // namespace ergometer::test
