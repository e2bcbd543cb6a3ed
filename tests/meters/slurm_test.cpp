// The slurm backend over scripts that answer like scontrol and sstat, and the runner of other programs.
#include "device/slurm/slurm.hpp"

#include "device/fake_tree.hpp"
#include "device/slurm/output.hpp"
#include "device/tool.hpp"

namespace ergometer::test {
namespace {

using namespace std::chrono_literals;
using namespace slurm;

const std::string kConfig =
    "Configuration data as of 2026-01-31T12:00:00\nAccountingStorageTRES    = cpu,mem,energy\n"
    "AcctGatherEnergyType    = acct_gather_energy/ipmi\nAcctGatherNodeFreq      = 20 sec\n";

// A machine inside job 42, step 0, with the two tools.
struct Cluster : FakeTree {
  Cluster() {
    options.environment = {{"PATH", (*this / "bin").string() + ":/usr/bin:/bin"},
                           {"SLURM_JOB_ID", "42"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURMD_NODENAME", "n7"}};
    write("config", kConfig);
    write("node", "NodeName=n7 CPUAlloc=8\n   CapWatts=n/a\n   CurrentWatts=312 AveWatts=280\n");
    write("step", "5000\n");
    script("scontrol", "echo \"$*\" >> asked; case $2 in config) cat config;; *) cat node;; esac");
    script("sstat", "echo \"$*\" >> asked; cat step");
  }
  void script(const std::string& name, const std::string& body) const {
    const auto file = "bin/" + name;
    write(file, "#!/bin/sh\ncd " + path().string() + "\n" + body + "\n");
    std::filesystem::permissions(*this / file, std::filesystem::perms::owner_all);
  }
  Discovery found() const {
    Discovery out;
    discover_slurm(host(), options, out);
    return out;
  }
  DiscoverOptions options;
};

TEST(Slurm, NodePowerAndStepEnergyAreShownApart) {
  Cluster cluster;
  const auto found = cluster.found();
  const auto sensor = sensor_named(found, "slurm");
  ASSERT_TRUE(sensor);
  EXPECT_EQ(read_row(*sensor), (Values{312.0, 5000.0}));
  EXPECT_EQ(sensor->info().interval, Nanos(20s));
  const auto& power = channel(*sensor, "slurm_node_power_w");
  EXPECT_EQ(power.period, Nanos(20s));
  EXPECT_EQ(power.scope, Scope::node);
  EXPECT_NE(power.domain, "node") << "not one of the candidates for the node's own energy";
  EXPECT_NE(cluster.read("asked").find("-n -P -j 42.0 -o ConsumedEnergyRaw"), std::string::npos);
}

TEST(Slurm, TheControllerIsNotAskedMoreOftenThanEachTenSeconds) {
  Cluster cluster;
  cluster.write("config", "AcctGatherEnergyType = acct_gather_energy/ipmi\nAcctGatherNodeFreq = 3 sec\n");
  const auto found = cluster.found();
  const auto sensor = sensor_named(found, "slurm");
  ASSERT_TRUE(sensor);
  EXPECT_EQ(sensor->info().interval, Nanos(10s));
}

TEST(Slurm, F94_SlurmsFigureIsNeverInTheTotal) {
  Cluster cluster;
  cluster.write("config", "AcctGatherEnergyType = acct_gather_energy/rapl\nAcctGatherNodeFreq = 30 sec\n");
  const auto found = cluster.found();
  const auto sensor = sensor_named(found, "slurm");
  ASSERT_TRUE(sensor);
  for (const auto& c : sensor->info().channels) {
    EXPECT_FALSE(c.in_total) << c.column;
    EXPECT_NE(c.note.find("reported by Slurm"), std::string::npos);
    EXPECT_NE(c.note.find("too high"), std::string::npos) << "RAPL-based figures";
  }
  // Blank and 0 are no energy of 0 J.
  cluster.write("node", "CurrentWatts=0 AveWatts=0\n");
  for (const auto* nothing : {"", "\n", "0\n"}) {
    cluster.write("step", nothing);
    Readings out;
    ASSERT_FALSE(sensor->read(out));
    EXPECT_TRUE(out.rows.empty());
  }
}

TEST(Slurm, F115_ValuesThatSlurmDoesNotHave) {
  for (const auto* text :
       {"CurrentWatts=n/s AveWatts=n/s", "CurrentWatts=0", "CurrentWatts=4294967294",
        "CurrentWatts=", "MyCurrentWatts=300", "CurrentWatts=18446744073709551614", "CurrentWatts=-3", ""})
    EXPECT_EQ(parse_node(text).power_w, std::nullopt) << text;
  const auto old = parse_node("CurrentWatts=105 LowestJoules=8947 ConsumedJoules=77000\n ExtSensorsJoules=n/s");
  EXPECT_EQ(old.power_w, 105.0);
  EXPECT_EQ(old.energy_j, 77000.0);
  EXPECT_EQ(parse_step("18446744073709551614\n"), std::nullopt);
  EXPECT_EQ(parse_step("1\n2\n"), std::nullopt) << "steps overlap and are not added";
  EXPECT_EQ(parse_step("960500"), 960500.0);
  EXPECT_EQ(parse_config("AcctGatherEnergyType = (null)").energy_type, "");
  EXPECT_EQ(parse_config("AcctGatherNodeFreq = 0 sec").node_period_s, std::nullopt);
}

TEST(Slurm, NothingOutsideAJobUnlessAskedFor) {
  Cluster cluster;
  cluster.options.environment.erase("SLURM_JOB_ID");
  auto found = cluster.found();
  EXPECT_TRUE(found.sensors.empty());
  EXPECT_TRUE(found.node.absences.empty());
  cluster.options.only = {"slurm"};
  found = cluster.found();
  ASSERT_EQ(found.sensors.size(), 1u);
  EXPECT_EQ(found.sensors[0]->info().channels.size(), 1u);
}

TEST(Slurm, NoPluginNoToolsAndATimeout) {
  Cluster cluster;
  cluster.write("config", "AcctGatherEnergyType = acct_gather_energy/none\n");
  auto found = cluster.found();
  ASSERT_EQ(found.node.absences.size(), 1u);
  EXPECT_NE(found.node.absences[0].remedy.find("AcctGatherEnergyType"), std::string::npos);
  cluster.script("scontrol", "sleep 20");
  found = cluster.found();
  ASSERT_EQ(found.node.absences.size(), 1u);
  EXPECT_NE(found.node.absences[0].reason.find("does not end"), std::string::npos);
  cluster.options.environment["PATH"] = (cluster / "empty").string();
  found = cluster.found();
  ASSERT_EQ(found.node.absences.size(), 1u);
  EXPECT_NE(found.node.absences[0].reason.find("scontrol is not there"), std::string::npos);
}

TEST(Slurm, AControllerThatIsDownIsAGap) {
  Cluster cluster;
  const auto found = cluster.found();
  const auto sensor = sensor_named(found, "slurm");
  ASSERT_TRUE(sensor);
  cluster.script("scontrol", "echo slurm_load_node error >&2; exit 1");
  EXPECT_EQ(read_row(*sensor), (Values{std::nullopt, 5000.0}));
  cluster.script("sstat", "exit 1");
  Readings out;
  ASSERT_FALSE(sensor->read(out));
}

TEST(Tool, OutputExitCodeAndLimit) {
  const Environment environment{{"PATH", "/usr/bin:/bin"}, {"WORD", "yes"}};
  EXPECT_EQ(run_tool({"sh", "-c", "echo $WORD; echo no >&2"}, environment, 5s).value_or("?"), "yes\n");
  EXPECT_EQ(run_tool({"sh", "-c", "exit 3"}, environment, 5s).error().code, ErrorCode::unavailable);
  EXPECT_EQ(run_tool({"no-such-program"}, environment, 5s).error().code, ErrorCode::not_found);
  EXPECT_EQ(run_tool({"sh", "-c", "cat /dev/zero"}, environment, 5s).error().code, ErrorCode::unavailable);
  // What it started in turn goes as well; it would keep the pipe open.
  EXPECT_EQ(run_tool({"sh", "-c", "sleep 30 & sleep 30"}, environment, 100ms).error().code, ErrorCode::timeout);
}

}  // namespace
}  // namespace ergometer::test
