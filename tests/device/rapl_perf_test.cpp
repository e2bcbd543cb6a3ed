// The rapl backend through perf, with a fake system call.
#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "device/fake_tree.hpp"
#include "device/rapl/rapl.hpp"

namespace ergometer::test {
namespace {

// The kernel's side of perf: counts by CPU and event, set by the test. A group is the order of opening.
struct FakePerf {
  std::map<std::pair<int, std::uint64_t>, std::uint64_t> counts;  // by CPU and config
  int open_error = 0;
  bool read_fails = false;
  int creep = 0;  // added to all counts at each read

  rapl::PerfCalls calls() {
    return {[this](std::uint32_t type, std::uint64_t config, int cpu, int group) {
              EXPECT_EQ(type, 21u);
              if (open_error) return -open_error;
              if (!counts.contains({cpu, config})) return -ENOENT;
              const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
              groups_[group < 0 ? fd : group].emplace_back(cpu, config);
              return fd;
            },
            [this](int fd, void* buffer, std::size_t size) -> ssize_t {
              if (read_fails) return 0;
              std::vector<std::uint64_t> words{groups_[fd].size()};
              for (const auto& key : groups_[fd]) words.push_back(counts[key] += creep);
              EXPECT_EQ(size, words.size() * sizeof(std::uint64_t));
              std::memcpy(buffer, words.data(), size);
              return static_cast<ssize_t>(size);
            }};
  }

 private:
  std::map<int, std::vector<std::pair<int, std::uint64_t>>> groups_;
};

constexpr std::uint64_t kCore = 1, kPackage = 2, kDram = 3, kPsys = 5;
std::uint64_t counts_of(double joules) { return static_cast<std::uint64_t>(joules * 4294967296.0); }

void power_pmu(const FakeTree& tree, const std::string& mask) {
  const std::string folder = "/sys/bus/event_source/devices/power/";
  tree.write(folder + "type", "21\n");
  tree.write(folder + "cpumask", mask + "\n");
  for (const auto& [name, config] :
       {std::pair("energy-cores", 1), {"energy-pkg", 2}, {"energy-ram", 3}, {"energy-psys", 5}}) {
    tree.write(folder + "events/" + name, fmt::format("event=0x0{}\n", config));
    tree.write(folder + "events/" + name + ".unit", "Joules\n");
    tree.write(folder + "events/" + name + ".scale", "2.3283064365386962890625e-10\n");
  }
}

TEST(Rapl, F28_StuckPerfCounterIsNotZero) {
  FakeTree tree;
  power_pmu(tree, "0");
  tree.powercap("intel-rapl:0", "package-0", 0);
  FakePerf perf;
  perf.counts = {{{0, kPackage}, counts_of(5)}};
  Discovery found;
  discover_rapl_with(tree.host(), {}, perf.calls(), found);
  auto& rapl = *sensor_named(found, "rapl");
  auto& powercap = *sensor_named(found, "rapl-powercap");
  ASSERT_EQ(rapl.info().interface, "rapl-perf");
  Readings out;
  const auto first = read_row(powercap);
  Values last;
  for (int i = 1; i <= 25; ++i) {
    tree.energy("intel-rapl:0", i * 5'000'000);
    EXPECT_EQ(read_row(rapl, out)[0], std::nullopt) << "reading " << i;
    EXPECT_EQ(count_events(out, "stuck"), i >= 20 ? 1u : 0u) << "reading " << i;
    if (i == 20) last = read_row(powercap);
  }
  EXPECT_DOUBLE_EQ(total_gain(powercap, first, last), 100.0);
  EXPECT_EQ(channel(powercap, "package_0_energy_j").domain, channel(rapl, "package_0_energy_j").domain);
  // It is believed again once it moves.
  perf.counts[{0, kPackage}] += counts_of(3);
  EXPECT_EQ(read_row(rapl, out)[0], 8.0);
  EXPECT_EQ(count_events(out, "back"), 1u);
}

TEST(Rapl, F28_StuckAfterItMoved) {
  FakeTree tree;
  power_pmu(tree, "0");
  FakePerf perf;
  perf.counts = {{{0, kPackage}, 0}, {{0, kCore}, 0}};
  perf.creep = 1;
  Discovery found;
  DiscoverOptions options;
  options.only = {"rapl-perf"};
  discover_rapl_with(tree.host(), options, perf.calls(), found);
  ASSERT_EQ(found.sensors.size(), 1u);
  auto& rapl = *found.sensors[0];
  Readings out;
  EXPECT_TRUE(read_row(rapl, out)[0]);
  perf.creep = 0;
  for (int i = 0; i < 19; ++i) EXPECT_TRUE(read_row(rapl, out)[column(rapl, "package_0_energy_j")]);
  const auto row = read_row(rapl, out);
  EXPECT_FALSE(row[column(rapl, "package_0_energy_j")]);
  EXPECT_TRUE(row[column(rapl, "core_0_energy_j")]) << "cores may rest";
  EXPECT_EQ(count_events(out, "stuck"), 1u);
}

TEST(Rapl, PerfReadsAllDomainsInOneRow) {
  FakeTree tree;
  power_pmu(tree, "0,8");
  tree.topology(0, 0, 0, 0);
  tree.topology(8, 1, 0, 0);
  tree.powercap("intel-rapl:0", "package-1", 0);
  tree.write("/sys/class/powercap/intel-rapl:0/constraint_0_max_power_uw", "205000000\n");
  FakePerf perf;
  perf.creep = 1;
  for (const int cpu : {0, 8})
    for (const auto config : {kPackage, kDram, kPsys}) perf.counts[{cpu, config}] = 0;
  Discovery found;
  discover_rapl_with(tree.host(), {}, perf.calls(), found);
  auto& rapl = *sensor_named(found, "rapl");
  perf.creep = 0;
  perf.counts[{0, kPackage}] = counts_of(10);
  perf.counts[{8, kPackage}] = counts_of(12);
  perf.counts[{0, kDram}] = counts_of(3);
  perf.counts[{8, kDram}] = counts_of(4);
  perf.counts[{0, kPsys}] = counts_of(50);
  const auto row = read_row(rapl);
  ASSERT_EQ(row.size(), 5u) << "psys is read once";
  EXPECT_EQ(row[column(rapl, "package_0_energy_j")], 10.0);
  EXPECT_EQ(row[column(rapl, "package_1_energy_j")], 12.0);
  EXPECT_EQ(row[column(rapl, "dram_0_energy_j")], 3.0);
  EXPECT_EQ(row[column(rapl, "dram_1_energy_j")], 4.0);
  EXPECT_EQ(row[column(rapl, "psys_0_energy_j")], 50.0);
  EXPECT_FALSE(channel(rapl, "psys_0_energy_j").in_total);
  EXPECT_EQ(channel(rapl, "package_1_energy_j").max_power_w, 205.0);
  EXPECT_EQ(channel(rapl, "package_0_energy_j").max_power_w, std::nullopt);
  EXPECT_EQ(channel(rapl, "package_0_energy_j").range, std::nullopt) << "the kernel folds wraps";
  // Cores are not offered by this processor: said, and nothing else lost.
  EXPECT_EQ(std::ranges::count_if(found.node.absences, [](const Absence& a) { return a.what == "core/0"; }), 1);

  perf.read_fails = true;
  Readings out;
  EXPECT_FALSE(rapl.read(out));
  EXPECT_FALSE(rapl.read(out));
  EXPECT_TRUE(out.rows.empty());
  EXPECT_EQ(count_events(out, "lost"), 2u) << "once a group";
}

TEST(Rapl, PerfForbiddenAndPowercapReadable) {
  FakeTree tree;
  power_pmu(tree, "0");
  tree.powercap("intel-rapl:0", "package-0", 0);
  FakePerf perf;
  perf.open_error = EACCES;
  Discovery found;
  discover_rapl_with(tree.host(), {}, perf.calls(), found);
  ASSERT_EQ(found.sensors.size(), 1u);
  EXPECT_EQ(found.sensors[0]->info().interface, "rapl-powercap");
  EXPECT_NE(found.sensors[0]->info().note.find("perf_event_paranoid"), std::string::npos);
  EXPECT_TRUE(found.node.absences.empty());
  EXPECT_TRUE(found.warnings.empty());

  DiscoverOptions options;
  options.only = {"rapl-perf"};
  Discovery only_perf;
  discover_rapl_with(tree.host(), options, perf.calls(), only_perf);
  EXPECT_TRUE(only_perf.sensors.empty());
  EXPECT_EQ(only_perf.node.absences.size(), 1u);
  EXPECT_EQ(only_perf.warnings.size(), 1u);
}

TEST(Rapl, DamagedPmuFallsBack) {
  FakeTree tree;
  power_pmu(tree, "0");
  tree.write("/sys/bus/event_source/devices/power/cpumask", "all of them\n");
  tree.powercap("intel-rapl:0", "package-0", 0);
  FakePerf perf;
  perf.counts = {{{0, kPackage}, 0}};
  Discovery found;
  discover_rapl_with(tree.host(), {}, perf.calls(), found);
  ASSERT_EQ(found.sensors.size(), 1u);
  EXPECT_EQ(found.sensors[0]->info().interface, "rapl-powercap");
}

}  // namespace
}  // namespace ergometer::test
