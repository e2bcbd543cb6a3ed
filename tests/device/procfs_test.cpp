// The procfs backend: processes and the node in fake trees.
#include "device/procfs/procfs.hpp"
#include "device/procfs/components.hpp"

#include <unistd.h>

#include "device/cgroup.hpp"
#include "device/fake_tree.hpp"
#include "device/procfs/process.hpp"
#include "device/procfs/tree.hpp"

namespace ergometer::test {
namespace {

using namespace std::chrono_literals;

Discovery discover(const FakeTree& tree, int root_pid = 1) {
  Discovery found;
  DiscoverOptions options;
  options.root_pid = root_pid;
  discover_procfs(tree.host(), options, found);
  return found;
}

// --- one process -----------------------------------------------------------------------------------------------------

std::string stat_line(const std::string& name, int ppid, int utime, int stime, int cutime, int cstime, int start,
                      int threads = 1, int rss_pages = 10) {
  return fmt::format(
      "7 ({}) S {} 7 7 0 -1 4194560 100 0 0 0 {} {} {} {} 20 0 {} 0 {} 1000000 {} 18446744073709551615 0\n", name, ppid,
      utime, stime, cutime, cstime, threads, start, rss_pages);
}

TEST(Procfs, NamesWithBlanksAndBrackets) {
  for (const std::string name : {"sh", "a b", "x) S 99 (", "new\nline", ")", ""}) {
    const auto stat = procfs::parse_process_stat(stat_line(name, 3, 100, 50, 20, 10, 777, 4), 100, 4096);
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->ppid, 3);
    EXPECT_EQ(stat->own_s, 1.5);
    EXPECT_EQ(stat->children_s, 0.3);
    EXPECT_EQ(stat->threads, 4);
    EXPECT_EQ(stat->start_ticks, 777u);
    EXPECT_EQ(stat->rss_bytes, 40960.0);
  }
}

TEST(Procfs, ZombiesAreNoProcesses) {
  auto text = stat_line("sh", 3, 100, 0, 0, 0, 1);
  EXPECT_FALSE(procfs::parse_process_stat(text, 100, 4096)->zombie);
  text[text.find(" S ") + 1] = 'Z';
  EXPECT_TRUE(procfs::parse_process_stat(text, 100, 4096)->zombie);
}

TEST(Procfs, DamagedProcessFiles) {
  const auto whole = stat_line("sh", 3, 1, 1, 1, 1, 1);
  for (const std::string& text :
       {std::string(), std::string("7 (sh"), std::string("7 (sh) S"), std::string("7 (sh) S 3 x"), whole.substr(0, 60)})
    EXPECT_FALSE(procfs::parse_process_stat(text, 100, 4096)) << text;
  EXPECT_FALSE(procfs::parse_process_io("rchar: 1\nread_bytes: many\nwrite_bytes: 1\n"));
  EXPECT_FALSE(procfs::parse_process_io("read_bytes: 1\n"));
  const auto io = procfs::parse_process_io("rchar: 9\nread_bytes: 1\nwrite_bytes: 2\ncancelled_write_bytes: 3\n");
  ASSERT_TRUE(io);
  EXPECT_EQ(io->read_bytes, 1.0);
  EXPECT_EQ(io->written_bytes, 2.0);
  EXPECT_EQ(procfs::parse_pss("00400000-7fff ---p [rollup]\nRss: 8 kB\nPss:   6 kB\nPss_Dirty: 1 kB\n"), 6144.0);
}

// --- the tree, scripted ----------------------------------------------------------------------------------------------

struct ScriptedTree : FakeTree {
  void process(int pid, int ppid, int own_ticks, int children_ticks, int start = 1) const {
    write(fmt::format("/proc/{}/stat", pid), stat_line("p", ppid, own_ticks, 0, children_ticks, 0, start));
  }
  void io(int pid, int read, int written) const {
    write(fmt::format("/proc/{}/io", pid), fmt::format("read_bytes: {}\nwrite_bytes: {}\n", read, written));
  }
  void end(int pid) const { std::filesystem::remove_all(*this / fmt::format("/proc/{}", pid)); }
  std::shared_ptr<Sensor> tree() const { return procfs::make_tree_sensor(host(), 10); }
  double seconds_of(int ticks) const { return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)); }
};

TEST(Procfs, EndedProcessesKeepCounting) {
  ScriptedTree world;
  world.process(10, 1, 999, 0);  // the root: its own time is not the tree's
  world.process(20, 10, 100, 0);
  world.process(15, 20, 50, 0);   // a grandchild with a lower number
  world.process(30, 1, 5000, 0);  // a stranger
  const auto tree = world.tree();
  const auto cpu = [&] { return read_row(*tree)[0].value(); };
  EXPECT_EQ(cpu(), world.seconds_of(150));
  // The grandchild ends and its parent waits for it a moment later.
  world.end(15);
  EXPECT_EQ(cpu(), world.seconds_of(150)) << "never falls";
  world.process(20, 10, 110, 60);
  EXPECT_DOUBLE_EQ(cpu(), world.seconds_of(170));
  // The child ends; the root has waited.
  world.end(20);
  world.process(10, 1, 999, 180);
  EXPECT_EQ(cpu(), world.seconds_of(180));
  EXPECT_EQ(cpu(), world.seconds_of(180));
  EXPECT_EQ(read_row(*tree)[column(*tree, "process_count")], 0.0);
}

TEST(Procfs, ProcessesThatNobodyWaitsForKeepCounting) {
  ScriptedTree world;
  world.process(10, 1, 0, 0);
  world.process(20, 10, 100, 0);
  world.process(21, 20, 40, 0);
  const auto tree = world.tree();
  const auto cpu = [&] { return read_row(*tree)[0].value(); };
  EXPECT_EQ(cpu(), world.seconds_of(140));
  world.end(21);
  world.process(20, 10, 200, 0);  // works on, so that the sum does not fall visibly
  EXPECT_EQ(cpu(), world.seconds_of(200));
  EXPECT_EQ(cpu(), world.seconds_of(240)) << "what did not arrive at the parent is kept";
  EXPECT_EQ(cpu(), world.seconds_of(240));
}

TEST(Procfs, OrphansStayInTheTree) {
  ScriptedTree world;
  world.process(10, 1, 0, 0);
  world.process(20, 10, 100, 0);
  world.process(21, 20, 40, 0);
  const auto tree = world.tree();
  EXPECT_EQ(read_row(*tree)[0], world.seconds_of(140));
  world.end(20);
  world.process(10, 1, 0, 100);
  world.process(21, 1, 90, 0);
  world.process(22, 21, 5, 0);
  const auto row = read_row(*tree);
  EXPECT_EQ(row[0], world.seconds_of(195));
  EXPECT_EQ(row[column(*tree, "process_count")], 2.0);
}

TEST(Procfs, ANumberUsedAgainIsAnotherProcess) {
  ScriptedTree world;
  world.process(10, 1, 0, 0);
  world.process(20, 10, 100, 0, 5);
  const auto tree = world.tree();
  EXPECT_EQ(read_row(*tree)[0], world.seconds_of(100));
  world.process(10, 1, 0, 100);
  world.process(20, 1, 7000, 0, 6);  // a stranger under the old number
  EXPECT_EQ(read_row(*tree)[0], world.seconds_of(100));
  EXPECT_EQ(read_row(*tree)[0], world.seconds_of(100));
}

TEST(Procfs, NewProcessesAreFoundByTheLastPid) {
  ScriptedTree world;
  world.write("/proc/loadavg", "0.1 0.1 0.1 1/90 20\n");
  world.process(10, 1, 0, 0);
  world.process(20, 10, 1, 0);
  const auto tree = world.tree();
  const auto count = [&] { return read_row(*tree)[column(*tree, "process_count")].value(); };
  EXPECT_EQ(count(), 1.0);
  world.process(21, 20, 1, 0);
  world.write("/proc/loadavg", "0.1 0.1 0.1 1/91 21\n");
  EXPECT_EQ(count(), 2.0);
}

TEST(Procfs, DiskBytesOfEndedProcesses) {
  ScriptedTree world;
  world.process(10, 1, 0, 0);
  world.process(20, 10, 1, 0);
  world.process(21, 20, 1, 0);
  world.io(20, 1000, 10);
  world.io(21, 500, 5);
  const auto tree = world.tree();
  const auto bytes = [&] {
    const auto row = read_row(*tree);
    return std::pair(row[column(*tree, "disk_read_bytes")], row[column(*tree, "disk_written_bytes")]);
  };
  EXPECT_EQ(bytes(), std::pair(std::optional(1500.0), std::optional(15.0)));
  // The kernel adds an ended child to the parent that waited.
  world.end(21);
  world.io(20, 1600, 16);
  EXPECT_EQ(bytes(), std::pair(std::optional(1600.0), std::optional(16.0)));
  // The root cannot be looked into: the last that is known stays.
  world.end(20);
  EXPECT_EQ(bytes(), std::pair(std::optional(1600.0), std::optional(16.0)));
}

TEST(Procfs, RootThatWaitedTakesTheDiskBytes) {
  ScriptedTree world;
  world.process(10, 1, 0, 0);
  world.io(10, 100, 100);  // 100 of its own
  world.write("/proc/10/task/10/io", "read_bytes: 100\nwrite_bytes: 100\n");
  world.process(20, 10, 1, 0);
  world.io(20, 1000, 10);
  const auto tree = world.tree();
  EXPECT_EQ(read_row(*tree)[column(*tree, "disk_read_bytes")], 1000.0);
  world.end(20);
  world.io(10, 5100, 150);  // the child had read 5000 when it ended
  EXPECT_EQ(read_row(*tree)[column(*tree, "disk_read_bytes")], 5000.0);
  EXPECT_EQ(read_row(*tree)[column(*tree, "disk_written_bytes")], 50.0);
}

TEST(Procfs, UnreadableDiskBytesAreMissing) {
  ScriptedTree world;
  world.process(10, 1, 0, 0);
  world.process(20, 10, 1, 0);
  const auto tree = world.tree();
  EXPECT_EQ(read_row(*tree)[column(*tree, "disk_read_bytes")], std::nullopt);
  world.end(10);
  Readings out;
  EXPECT_FALSE(tree->read(out)) << "without its root there is no tree";
}

// --- the node --------------------------------------------------------------------------------------------------------

void node_files(const FakeTree& tree) {
  tree.write("/proc/meminfo", "MemTotal:       67108864 kB\nMemFree: 1 kB\nMemAvailable:   50331648 kB\n");
  tree.write("/sys/devices/system/cpu/online", "0,2-7\n");
}

TEST(Procfs, NodeComposition) {
  FakeTree tree;
  node_files(tree);
  tree.write("/proc/cpuinfo", "processor : 0\nmodel name\t: Example CPU @ 2.0GHz\n");
  tree.write("/proc/sys/kernel/hostname", "node17.cluster\n");
  tree.write("/proc/sys/kernel/osrelease", "6.1.0\n");
  tree.write("/proc/sys/kernel/random/boot_id", "abc\n");
  for (const int cpu : {0, 2, 3, 4, 5, 6, 7}) tree.topology(cpu, cpu / 4, 0, cpu / 2);
  const auto node = discover(tree).node;
  EXPECT_EQ(node.hostname, "node17.cluster");
  EXPECT_EQ(node.kernel, "6.1.0");
  EXPECT_EQ(node.boot_id, "abc");
  EXPECT_EQ(node.cpu.model, "Example CPU @ 2.0GHz");
  EXPECT_EQ(node.cpu.sockets, 2);
  EXPECT_EQ(node.cpu.cores, 4);
  EXPECT_EQ(node.cpu.threads, 7);
  EXPECT_EQ(node.cpu.online, "0,2-7");
  EXPECT_EQ(node.memory_bytes, 68719476736.0);
}

TEST(Procfs, F82_NoLimitIsNone) {
  for (const bool version1 : {false, true}) {
    FakeTree tree;
    node_files(tree);
    if (version1)
      tree.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    else
      tree.write("/sys/fs/cgroup/memory.max", "max\n");
    const auto node = discover(tree).node;
    EXPECT_EQ(node.memory_limit_bytes, std::nullopt);
    EXPECT_EQ(node.memory_bytes, 68719476736.0);
    EXPECT_EQ(node.cpu.quota_cpus, std::nullopt);
  }
}

TEST(Procfs, F83_LimitsOfTheContainer) {
  FakeTree tree;
  tree.write("/proc/meminfo", "MemTotal:       1073741824 kB\n");
  tree.write("/sys/devices/system/cpu/online", "0-63\n");
  tree.write("/sys/fs/cgroup/memory.max", "107374182400\n");
  tree.write("/sys/fs/cgroup/cpu.max", "800000 100000\n");
  const auto node = discover(tree).node;
  EXPECT_EQ(node.memory_limit_bytes, 107374182400.0);
  EXPECT_EQ(node.cpu.quota_cpus, 8.0);
  EXPECT_EQ(node.cpu.threads, 64);
}

TEST(Procfs, TheStrictestLimitAboveTheOwnGroupHolds) {
  FakeTree tree;
  tree.write("/proc/self/cgroup", "5:memory:/other\n0::/slurm/job_7/step_0\n");
  tree.write("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
  tree.write("/sys/fs/cgroup/slurm/job_7/memory.max", "1000\n");
  tree.write("/sys/fs/cgroup/slurm/memory.max", "2000\n");
  tree.write("/sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "max 100000\n");
  tree.write("/sys/fs/cgroup/slurm/job_7/step_0/memory.current", "77\n");
  const auto limits = read_cgroup_limits(HostRoot(tree.path()));
  EXPECT_EQ(limits.memory_bytes, 1000.0);
  EXPECT_EQ(limits.cpus, std::nullopt);
  EXPECT_EQ(find_cgroup_usage(HostRoot(tree.path())).memory_bytes,
            tree / "/sys/fs/cgroup/slurm/job_7/step_0/memory.current");
  // Version 1: the group of this controller, and -1 for no quota.
  FakeTree old;
  old.write("/proc/self/cgroup", "4:memory:/job\n3:cpu,cpuacct:/job\n");
  old.write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "3000\n");
  old.write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  old.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
  old.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read_cgroup_limits(HostRoot(old.path())).memory_bytes, 3000.0);
  EXPECT_EQ(read_cgroup_limits(HostRoot(old.path())).cpus, 2.5);
}

void cpu_stat(const FakeTree& tree, const std::vector<int>& cpus, int ticks) {
  std::string text = fmt::format("cpu  {0} 0 0 9 0 0 0 0 0 0\n", ticks);
  for (const int cpu : cpus) text += fmt::format("cpu{} {} 1 2 1000 50 3 4 5 99 99\n", cpu, ticks + cpu);
  tree.write("/proc/stat", text + "intr 12345\nbtime 1\n");
}

TEST(Procfs, F27_OfflineCpusAreMissing) {
  FakeTree tree;
  node_files(tree);
  for (const int cpu : {0, 2, 3, 4, 5, 6, 7}) tree.topology(cpu, 0, 0, cpu);  // cpu1 has no folder
  cpu_stat(tree, {0, 2, 3, 4, 5, 6, 7}, 100);
  const auto found = discover(tree);
  auto& cpus = *sensor_named(found, "cpus");
  ASSERT_EQ(cpus.info().channels.size(), 7u);
  EXPECT_EQ(cpus.info().channels[1].column, "cpu2_busy_s");
  Readings out;
  const auto hz = static_cast<double>(::sysconf(_SC_CLK_TCK));
  for (int sample = 1; sample <= 8; ++sample) {
    if (sample == 5) tree.write("/sys/devices/system/cpu/online", "0,2-6\n");
    const auto row = read_row(cpus, out);
    EXPECT_EQ(row[6].has_value(), sample < 5) << sample;
    EXPECT_EQ(row[0], (100 + 15) / hz);  // user, nice, system, irq, softirq, steal; guests are inside user
  }
  EXPECT_EQ(count_events(out, "lost"), 1u);
  cpu_stat(tree, {0, 2, 3, 4, 5, 6}, 100);
  EXPECT_EQ(read_row(cpus, out)[6], std::nullopt);
  cpu_stat(tree, {0, 2, 3, 4, 5, 6, 7}, 100);
  tree.write("/sys/devices/system/cpu/online", "0-7\n");
  EXPECT_TRUE(read_row(cpus, out)[6]);
  EXPECT_EQ(count_events(out, "back"), 1u);
}

TEST(Procfs, SystemCountsDisksAndNetworkOnce) {
  FakeTree tree;
  node_files(tree);
  cpu_stat(tree, {0, 2}, 100);
  for (const char* disk : {"sda", "nvme0n1", "dm-0", "md0", "loop0"})
    tree.write(fmt::format("/sys/block/{}/size", disk), "1\n");
  for (const char* card : {"eth0", "lo"}) tree.write(fmt::format("/sys/class/net/{}/mtu", card), "1\n");
  tree.write("/sys/class/net/eth0/device/vendor", "1\n");
  tree.write("/sys/fs/cgroup/memory.current", "4096\n");
  tree.write("/sys/fs/cgroup/cpu.stat", "usage_usec 2500000\nuser_usec 1\n");
  const auto set = [&](int sectors, int bytes) {
    std::string disks, net = "Inter-|   Receive\n face |bytes\n";
    for (const char* name : {"sda", "sda1", "nvme0n1", "nvme0n1p2", "dm-0", "md0", "loop0"})
      disks += fmt::format("   8       0 {} 5 0 {} 1 5 0 {} 1 0 1 1\n", name, sectors, 2 * sectors);
    for (const char* name : {"lo", "eth0", "docker0", "veth12"})
      net += fmt::format("  {}:{} 1 0 0 0 0 0 0 {} 1 0 0 0 0 0 0\n", name, bytes, 3 * bytes);
    tree.write("/proc/diskstats", disks);
    tree.write("/proc/net/dev", net);
  };
  set(10, 1000);
  const auto found = discover(tree);
  auto& system = *sensor_named(found, "system");
  const auto first = read_row(system);
  EXPECT_EQ(first[column(system, "cpu_online_count")], 2.0);
  EXPECT_EQ(first[column(system, "memory_used_bytes")], 16777216.0 * 1024);
  EXPECT_EQ(first[column(system, "cgroup_memory_bytes")], 4096.0);
  EXPECT_EQ(first[column(system, "cgroup_cpu_s")], 2.5);
  set(110, 1700);
  const auto last = read_row(system);
  const auto gain = [&](const char* name) { return *last[column(system, name)] - *first[column(system, name)]; };
  EXPECT_EQ(gain("disk_read_bytes"), 2 * 100 * 512.0) << "two whole disks";
  EXPECT_EQ(gain("disk_written_bytes"), 2 * 200 * 512.0);
  EXPECT_EQ(gain("network_received_bytes"), 700.0) << "the one physical interface";
  EXPECT_EQ(gain("network_sent_bytes"), 2100.0);
}

TEST(Procfs, SystemWithBadFiles) {
  FakeTree tree;
  const auto found = discover(tree);  // an empty /proc
  auto& system = *sensor_named(found, "system");
  Readings out;
  EXPECT_FALSE(system.read(out));
  tree.write("/proc/meminfo", "MemTotal: 5\nMemAvailable: much kB\n");
  tree.write("/proc/stat", std::string(1000, 'x'));
  tree.write("/proc/diskstats", "8 0 sda\n\n\n");
  tree.write("/proc/net/dev", ":::\n eth0: 1 2\n");
  const auto row = read_row(system);
  EXPECT_EQ(row[column(system, "cpu_s")], std::nullopt);
  EXPECT_EQ(row[column(system, "memory_used_bytes")], std::nullopt);
  EXPECT_EQ(row[column(system, "disk_read_bytes")], 0.0);
  EXPECT_EQ(found.node.absences.size(), 1u) << "no list of CPUs";
}

TEST(Procfs, TheRealMachine) {
  Discovery found;
  discover_procfs(Host::real(), {}, found);
  EXPECT_FALSE(found.node.hostname.empty());
  EXPECT_GT(found.node.memory_bytes.value_or(0), 0);
  EXPECT_GT(found.node.cpu.threads.value_or(0), 0);
  for (const auto& sensor : found.sensors) read_row(*sensor);
  const auto row = read_row(*sensor_named(found, "system"));
  EXPECT_GT(row[0].value_or(0), 0);
  EXPECT_GT(row[2].value_or(0), 0);
}

TEST(Components, OnlyWhatHasADeviceBehindIt) {
  FakeTree tree;
  tree.write("/sys/class/net/lo/mtu", "65536\n");
  tree.write("/sys/class/net/eth0/device/vendor", "0x15b3\n");
  tree.write("/sys/class/net/eth0/device/device", "0x1017\n");
  tree.write("/sys/block/loop0/size", "0\n");
  tree.write("/sys/block/nvme0n1/device/model", "SAMSUNG MZ   \n");
  tree.write("/sys/class/hwmon/hwmon3/name", "nct6775\n");
  tree.write("/sys/class/hwmon/hwmon3/fan1_input", "1200\n");
  tree.write("/sys/class/hwmon/hwmon3/fan2_input", "900\n");
  tree.write("/sys/class/hwmon/hwmon3/fan2_label", "Rear\n");
  tree.write("/sys/class/hwmon/hwmon3/fan2_min", "0\n");
  tree.write("/sys/class/power_supply/AC/type", "Mains\n");
  tree.write("/sys/class/power_supply/BAT0/type", "Battery\n");
  tree.write("/sys/class/power_supply/mouse/type", "Battery\n");
  tree.write("/sys/class/power_supply/mouse/scope", "Device\n");
  Discovery found;
  discover_components(tree.host(), {}, found);
  std::vector<std::string> lines;
  for (const auto& c : found.node.components) lines.push_back(c.kind + ":" + c.name + ":" + c.model);
  EXPECT_EQ(lines, (std::vector<std::string>{"battery:BAT0:", "disk:nvme0n1:SAMSUNG MZ", "fan:nct6775 Rear:",
                                             "fan:nct6775 fan1:", "nic:eth0:PCI 0x15b3:0x1017", "supply:AC:"}));
  Discovery nothing;
  discover_components(FakeTree().host(), {}, nothing);
  EXPECT_TRUE(nothing.node.components.empty());
}

}  // namespace
}  // namespace ergometer::test
