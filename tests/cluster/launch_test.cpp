// Which launch a process belongs to, from the variables of its launcher.
#include "cluster/launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ergometer::test {
namespace {

using ::testing::ElementsAre;

Environment slurm() {
  return {{"SLURM_JOB_ID", "12"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", "3"},
          {"SLURM_LOCALID", "1"},
          {"SLURM_NODEID", "1"},
          {"SLURM_STEP_NUM_TASKS", "6"},
          {"SLURM_NTASKS", "24"},
          {"SLURM_STEP_NUM_NODES", "3"},
          {"SLURM_STEP_NODELIST", "n[1-3]"},
          {"SLURM_STEP_TASKS_PER_NODE", "3,2(x1),1"}};
}

Environment open_mpi() {
  return {{"OMPI_COMM_WORLD_RANK", "2"},
          {"OMPI_COMM_WORLD_SIZE", "4"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
          {"PMIX_NAMESPACE", "1328218113"},
          {"OMPI_MCA_orte_num_nodes", "2"},
          {"PMIX_RANK", "2"}};
}

Environment torchrun() {
  return {{"TORCHELASTIC_RUN_ID", "train-7"},
          {"RANK", "5"},
          {"LOCAL_RANK", "1"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"GROUP_WORLD_SIZE", "2"},
          {"MASTER_ADDR", "n1"},
          {"MASTER_PORT", "29500"}};
}

TEST(Launch, WithoutALauncherThereIsNone) {
  EXPECT_FALSE(find_launch({}));
  EXPECT_FALSE(find_launch({{"RANK", "0"}, {"WORLD_SIZE", "2"}})) << "names that many programs use for other things";
}

TEST(Launch, AStepOfSlurm) {
  const auto launch = find_launch(slurm());
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->launcher, "slurm");
  EXPECT_EQ(launch->key, "slurm-12.0");
  EXPECT_EQ(launch->rank, 3);
  EXPECT_EQ(launch->local_rank, 1);
  EXPECT_EQ(launch->world_size, 6) << "the step's, not the job's";
  EXPECT_EQ(launch->local_size, 2) << "of node 1";
  EXPECT_EQ(launch->node_count, 3);
  EXPECT_THAT(launch->expected_nodes, ElementsAre("n1", "n2", "n3"));
}

TEST(Launch, ABatchScriptIsNoStep) {
  auto environment = slurm();
  environment["SLURM_STEP_ID"] = "4294967291";
  EXPECT_FALSE(find_launch(environment));
  environment.erase("SLURM_STEP_ID");
  EXPECT_FALSE(find_launch(environment));
}

TEST(Launch, ARequeuedJobIsAnotherLaunch) {
  auto environment = slurm();
  environment["SLURM_RESTART_COUNT"] = "0";
  EXPECT_EQ(find_launch(environment)->key, "slurm-12.0");
  environment["SLURM_RESTART_COUNT"] = "1";
  EXPECT_EQ(find_launch(environment)->key, "slurm-12.0-restart1");
}

TEST(Launch, OpenMpi) {
  const auto launch = find_launch(open_mpi());
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->launcher, "openmpi");
  EXPECT_EQ(launch->key, "ompi-1328218113");
  EXPECT_EQ(launch->rank, 2);
  EXPECT_EQ(launch->local_size, 2);
  EXPECT_EQ(launch->node_count, 2);
}

TEST(Launch, TheInnermostLauncherCounts) {
  auto in_step = slurm();
  in_step.merge(open_mpi());
  EXPECT_EQ(find_launch(in_step)->key, "ompi-1328218113");
  in_step.merge(torchrun());
  EXPECT_EQ(find_launch(in_step)->key, "torchrun-train-7");
  EXPECT_EQ(find_launch(in_step)->rank, 5);
  auto pmix = slurm();
  pmix["PMIX_RANK"] = "3";
  EXPECT_EQ(find_launch(pmix)->launcher, "slurm") << "srun --mpi=pmix is one launcher";
}

TEST(Launch, TorchrunWithoutANameIsToldByWhereItsRanksMeet) {
  auto environment = torchrun();
  environment["TORCHELASTIC_RUN_ID"] = "none";
  EXPECT_EQ(find_launch(environment)->key, "torchrun-n1-29500");
  environment["MASTER_PORT"] = "29501";
  EXPECT_EQ(find_launch(environment)->key, "torchrun-n1-29501");
}

TEST(Launch, KeysAreSafeFileNamesAndStayDifferent) {
  auto environment = torchrun();
  environment["TORCHELASTIC_RUN_ID"] = "../x";
  const auto one = find_launch(environment)->key;
  environment["TORCHELASTIC_RUN_ID"] = "..:x";
  const auto other = find_launch(environment)->key;
  EXPECT_EQ(one.find('/'), std::string::npos);
  EXPECT_NE(one, other);
  environment["TORCHELASTIC_RUN_ID"] = std::string(5000, 'a');
  EXPECT_LT(find_launch(environment)->key.size(), 200U);
}

TEST(Launch, OneRankHasNoPeers) {
  auto environment = open_mpi();
  EXPECT_TRUE(find_launch(environment)->has_peers());
  environment["OMPI_COMM_WORLD_SIZE"] = "1";
  EXPECT_FALSE(find_launch(environment)->has_peers());
}

TEST(Launch, AWrongNumberIsNone) {
  auto environment = slurm();
  environment["SLURM_PROCID"] = "-4";
  environment["SLURM_STEP_NUM_TASKS"] = "";
  environment["SLURM_NTASKS"] = "many";
  environment["SLURM_STEP_NODELIST"] = "n[1-";
  const auto launch = find_launch(environment);
  EXPECT_FALSE(launch->rank);
  EXPECT_FALSE(launch->world_size);
  EXPECT_TRUE(launch->expected_nodes.empty());
}

TEST(Launch, ANameGivenByHandJoinsWhatNoLauncherNames) {
  const Environment nameless{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}};
  EXPECT_FALSE(find_launch(nameless));
  EXPECT_TRUE(is_nameless_launch(nameless));
  auto named = nameless;
  named["ERGOMETER_LAUNCH"] = "today";
  EXPECT_FALSE(is_nameless_launch(named));
  EXPECT_EQ(find_launch(named)->key, "named-today");
  EXPECT_EQ(find_launch(named)->launcher, "pmi");
  EXPECT_EQ(find_launch(named)->rank, 1);
  const auto by_hand = find_launch({{"ERGOMETER_LAUNCH", "x"}, {"RANK", "2"}, {"WORLD_SIZE", "3"}});
  EXPECT_EQ(by_hand->launcher, "named");
  EXPECT_EQ(by_hand->world_size, 3);
}

TEST(Launch, AnEmptyNameMeansOnItsOwn) {
  auto environment = slurm();
  environment["ERGOMETER_LAUNCH"] = "";
  EXPECT_FALSE(find_launch(environment));
  EXPECT_FALSE(is_nameless_launch({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"ERGOMETER_LAUNCH", ""}}));
}

TEST(Launch, DeviceVariablesAreTheOnesThatDecideWhoSeesWhat) {
  EXPECT_EQ(device_variables({{"CUDA_VISIBLE_DEVICES", "1"}, {"HOME", "/root"}}),
            (Environment{{"CUDA_VISIBLE_DEVICES", "1"}}));
}

}  // namespace
}  // namespace ergometer::test
