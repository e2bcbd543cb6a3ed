// What a node's part says of its launch and its ranks.
#include "cluster/part.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_dir.hpp"

namespace ergometer::test {
namespace {

using ::testing::ElementsAre;

Member member(std::optional<int> rank, std::optional<int> exit_code, std::optional<MonoTime> begin = {},
              std::optional<MonoTime> end = {}) {
  Member m;
  m.rank = rank;
  m.node = "n1";
  m.exit_code = exit_code;
  m.begin = begin;
  m.end = end;
  return m;
}

TEST(RanksTogether, TheFirstFailureByRankIsTheOneThatCounts) {
  auto killed = member(2, 137);
  killed.signal = 9;
  const auto together = ranks_together({member(3, 1), killed, member(0, 0)}, "n1");
  EXPECT_EQ(together.exit_code, 137);
  EXPECT_EQ(together.signal, 9);
  ASSERT_EQ(together.ranks.size(), 3U);
  EXPECT_EQ(together.ranks[0].rank, 0);
  EXPECT_EQ(together.ranks[2].rank, 3);
}

TEST(RanksTogether, AnExitCodeThatNobodyToldIsUnknown) {
  EXPECT_EQ(ranks_together({member(0, std::nullopt)}, "n1").exit_code, std::nullopt);
  EXPECT_EQ(ranks_together({member(0, std::nullopt), member(1, 0)}, "n1").exit_code, 0);
}

TEST(RanksTogether, TheSpanIsThatOfAll) {
  const auto together = ranks_together({member(0, 0, mono_ns(10), mono_ns(40)), member(1, 0, mono_ns(5), mono_ns(30)),
                                        member(2, 0, std::nullopt, mono_ns(60))},
                                       "n1");
  EXPECT_EQ(together.begin, mono_ns(5));
  EXPECT_EQ(together.end, mono_ns(60));
}

TEST(RanksTogether, OtherNamesOfTheNodeAreNamedOnce) {
  auto other = member(1, 0), again = member(2, 0);
  other.node = again.node = "n2";
  EXPECT_THAT(ranks_together({member(0, 0), other, again}, "n1").aliases, ElementsAre("n2"));
}

TEST(Member, SurvivesItsFile) {
  Member m = member(4, 143, mono_ns(7), mono_ns(9));
  m.pid = 77;
  m.pid_namespace = "pid:[1]";
  m.signal = 15;
  m.cpu_s = 1.25;
  m.devices = {{"CUDA_VISIBLE_DEVICES", ""}};
  const auto back = member_from_json(member_to_json(m), "m.json");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->rank, 4);
  EXPECT_EQ(back->pid, 77);
  EXPECT_EQ(back->pid_namespace, "pid:[1]");
  EXPECT_EQ(back->devices, m.devices);
  EXPECT_EQ(back->begin, mono_ns(7));
  EXPECT_EQ(back->end, mono_ns(9));
  EXPECT_EQ(back->exit_code, 143);
  EXPECT_EQ(back->signal, 15);
  EXPECT_EQ(back->cpu_s, 1.25);
  EXPECT_FALSE(member_from_json("{\"schema\":\"ergometer.member/1\",\"pid\":\"x\"}", "m.json"));
}

TEST(Part, TheRunNamesItsLaunchAndItsReference) {
  Launch launch;
  launch.launcher = "slurm";
  launch.key = "slurm-12.0";
  launch.world_size = 6;
  launch.node_count = 3;
  launch.expected_nodes = {"n1", "n2", "n3"};
  Whereabouts here;
  here.node = "n2";
  here.job = "12";
  Manifest part;
  part.place = place_of(&launch, {"boot", "4026531834", "/root"}, here);
  EXPECT_EQ(part.place->run_key, "slurm-12.0");
  EXPECT_EQ(part.place->world_size, 6);
  EXPECT_EQ(part.place->host_root, "/root");
  EXPECT_EQ(part.place->job, "12");
  const auto run = run_of(part, launch);
  EXPECT_FALSE(run.place);
  ASSERT_TRUE(run.parts);
  EXPECT_EQ(run.parts->run_key, "slurm-12.0");
  EXPECT_EQ(run.parts->nodes, 3);
  EXPECT_EQ(run.parts->ranks, 6);
  EXPECT_EQ(run.parts->clock_reference, "n2");
  EXPECT_THAT(run.nodes, ElementsAre("n1", "n2", "n3"));
}

TEST(Machine, HasOneNumberForAllThatMeasureTheSame) {
  const Machine machine{"boot", "1", ""};
  EXPECT_EQ(machine.id(), (Machine{"boot", "1", ""}).id());
  EXPECT_NE(machine.id(), (Machine{"boot2", "1", ""}).id());
  EXPECT_NE(machine.id(), (Machine{"boot", "2", ""}).id());
  EXPECT_NE(machine.id(), (Machine{"boot", "1", "/host"}).id());
  EXPECT_EQ(machine.clock(), (Machine{"boot", "1", "/host"}).clock()) << "another root has the same clock";
}

TEST(Machine, TellsItselfFromTheKernel) {
  TempDir root;
  const auto here = this_machine({});
  EXPECT_EQ(here.boot_id.size(), 36U);
  EXPECT_EQ(here.host_root, "");
  EXPECT_EQ(this_machine("/").id(), here.id());
  const auto elsewhere = this_machine(root.path());
  EXPECT_EQ(elsewhere.clock(), here.clock());
  EXPECT_NE(elsewhere.id(), here.id());
}

TEST(Whereabouts, TheBatchSystemsNameOfTheNodeComesFirst) {
  TempDir root;
  root.write("proc/sys/kernel/hostname", "vm7\n");
  const auto host = Host::real(root.path());
  EXPECT_EQ(find_whereabouts(host, {}).node, "vm7");
  EXPECT_EQ(find_whereabouts(host, {}).job, "");
  const auto there =
      find_whereabouts(host, {{"SLURMD_NODENAME", "n2"}, {"SLURM_JOB_ID", "12"}, {"SLURM_JOB_USER", "ada"}});
  EXPECT_EQ(there.node, "n2");
  EXPECT_EQ(there.hostname, "vm7");
  EXPECT_EQ(there.job, "12");
  EXPECT_EQ(there.job_user, "ada");
  EXPECT_EQ(find_whereabouts(host, {{"APPTAINER_NAME", "torch.sif"}}).container, "apptainer torch.sif");
}

}  // namespace
}  // namespace ergometer::test
