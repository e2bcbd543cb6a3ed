#include "parallel/rank.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "parallel/host_list.hpp"

namespace ergometer::workload {
namespace {

// All variables that rank_from_environment reads; while it lives, unset but for those of the test.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables) {
    unset_all();
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() { unset_all(); }

 private:
  static void unset_all() {
    for (const char* name : {"RANK",
                             "WORLD_SIZE",
                             "LOCAL_RANK",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "ERGOMETER_LAUNCHER",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_RANK",
                             "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "PMIX_NAMESPACE",
                             "OMPI_MCA_ess_base_jobid",
                             "SLURM_PROCID",
                             "SLURM_NTASKS",
                             "SLURM_NPROCS",
                             "SLURM_LOCALID",
                             "SLURM_STEP_ID",
                             "SLURM_STEP_NUM_TASKS",
                             "SLURM_STEP_NUM_NODES",
                             "SLURM_NNODES",
                             "SLURM_STEP_NODELIST",
                             "SLURM_JOB_NODELIST",
                             "SLURM_NODELIST",
                             "SLURM_JOB_ID",
                             "SLURM_JOBID",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "MPI_LOCALRANKID",
                             "PMI_LOCAL_RANK",
                             "MPI_LOCALNRANKS",
                             "PMI_LOCAL_SIZE",
                             "PMI_JOBID",
                             "PALS_APID"}) {
      ::unsetenv(name);
    }
  }
};

Rank found(const std::map<std::string, std::string>& variables) {
  const Environment environment(variables);
  const auto rank = rank_from_environment();
  if (!rank) {
    ADD_FAILURE() << rank.error().message;
    return {};
  }
  return *rank;
}

Error refused(const std::map<std::string, std::string>& variables) {
  const Environment environment(variables);
  const auto rank = rank_from_environment();
  if (rank) {
    ADD_FAILURE() << "rank " << rank->rank << " of " << rank->size << " by " << rank->launcher;
    return {};
  }
  EXPECT_EQ(rank.error().fault, Fault::usage);
  EXPECT_FALSE(rank.error().hint.empty());
  return rank.error();
}

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(RankFromEnvironment, IsAloneWithoutALauncher) {
  const Rank rank = found({});
  EXPECT_EQ(rank.size, 1);
  EXPECT_EQ(rank.launcher, "");
}

TEST(RankFromEnvironment, ReadsTorchrun) {
  const Rank rank =
      found({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29501"}});
  EXPECT_EQ(rank.rank, 5);
  EXPECT_EQ(rank.size, 8);
  EXPECT_EQ(rank.local_rank, 1);
  EXPECT_EQ(rank.address, "n1");
  EXPECT_EQ(rank.port, 29501);
  EXPECT_EQ(rank.launcher, "torchrun");
}

TEST(RankFromEnvironment, TorchrunInAnSrunStepGoesFirst) {
  const Rank rank = found({{"RANK", "3"},
                           {"WORLD_SIZE", "4"},
                           {"LOCAL_RANK", "1"},
                           {"MASTER_ADDR", "n1"},
                           {"MASTER_PORT", "29501"},
                           {"SLURM_PROCID", "1"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_STEP_NUM_TASKS", "2"},
                           {"SLURM_LOCALID", "0"}});
  EXPECT_EQ(rank.rank, 3);
  EXPECT_EQ(rank.launcher, "torchrun");
}

TEST(RankFromEnvironment, RefusesWhatIsMissingOrContradicts) {
  EXPECT_TRUE(mentions(refused({{"WORLD_SIZE", "4"}}).message, "WORLD_SIZE=4"));
  EXPECT_TRUE(mentions(refused({{"RANK", "0"}}).message, "WORLD_SIZE is not set"));
  EXPECT_TRUE(mentions(refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).message, "LOCAL_RANK is not set"));
  EXPECT_TRUE(
      mentions(refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}).message, "MASTER_ADDR is not"));
  EXPECT_TRUE(mentions(refused({{"RANK", "one"}, {"WORLD_SIZE", "2"}}).message, "RANK='one'"));
  EXPECT_TRUE(mentions(refused({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}).message, "rank 2"));
  EXPECT_TRUE(mentions(refused({{"RANK", "-1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}).message, "RANK='-1'"));
  EXPECT_TRUE(mentions(
      refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "70000"}})
          .message,
      "70000"));
}

const std::map<std::string, std::string> kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                                                     {"OMPI_COMM_WORLD_SIZE", "2"},
                                                     {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                                     {"PMIX_NAMESPACE", "4242"}};

TEST(RankFromEnvironment, ReadsOpenMpiOnOneMachine) {
  const Rank rank = found(kOpenMpi);
  EXPECT_EQ(rank.rank, 1);
  EXPECT_EQ(rank.size, 2);
  EXPECT_EQ(rank.local_rank, 1);
  EXPECT_EQ(rank.address, "127.0.0.1");
  EXPECT_GE(rank.port, 20000);
  EXPECT_LT(rank.port, 30000);
  EXPECT_EQ(rank.launcher, "Open MPI");
  auto other = kOpenMpi;
  other["PMIX_NAMESPACE"] = "4243";
  EXPECT_NE(found(other).port, rank.port);
}

TEST(RankFromEnvironment, OpenMpiOnSeveralMachinesNeedsAnAddress) {
  auto variables = kOpenMpi;
  variables["OMPI_COMM_WORLD_SIZE"] = "4";
  EXPECT_TRUE(mentions(refused(variables).hint, "MASTER_ADDR"));
  variables["MASTER_ADDR"] = "n7";
  const Rank rank = found(variables);
  EXPECT_EQ(rank.address, "n7");
  EXPECT_EQ(rank.port, found(kOpenMpi).port);
  variables["MASTER_PORT"] = "1234";
  EXPECT_EQ(found(variables).port, 1234);
}

TEST(RankFromEnvironment, RefusesAWorldSizeThatTheLauncherDoesNotHave) {
  auto variables = kOpenMpi;
  variables["WORLD_SIZE"] = "8";
  EXPECT_TRUE(mentions(refused(variables).message, "WORLD_SIZE=8 contradicts Open MPI"));
  variables["WORLD_SIZE"] = "2";
  EXPECT_EQ(found(variables).size, 2);
}

const std::map<std::string, std::string> kSlurm = {
    {"SLURM_PROCID", "3"},         {"SLURM_NTASKS", "8"},
    {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_LOCALID", "1"},
    {"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_STEP_ID", "0"},
    {"SLURM_JOB_ID", "777"},       {"SLURM_STEP_NODELIST", "gpu[03-04]"}};

TEST(RankFromEnvironment, ReadsAnSrunStep) {
  const Rank rank = found(kSlurm);
  EXPECT_EQ(rank.rank, 3);
  EXPECT_EQ(rank.size, 4);
  EXPECT_EQ(rank.local_rank, 1);
  EXPECT_EQ(rank.address, "gpu03");
  EXPECT_GE(rank.port, 20000);
  EXPECT_EQ(rank.launcher, "Slurm");
  auto later = kSlurm;
  later["SLURM_STEP_ID"] = "1";
  EXPECT_NE(found(later).port, rank.port);
  auto one = kSlurm;
  one["SLURM_STEP_NUM_NODES"] = "1";
  EXPECT_EQ(found(one).address, "127.0.0.1");
}

TEST(RankFromEnvironment, ABatchScriptIsAlone) {
  auto variables = kSlurm;
  variables["SLURM_PROCID"] = "0";
  variables.erase("SLURM_STEP_ID");
  EXPECT_EQ(found(variables).size, 1);
  variables["SLURM_STEP_ID"] = "4294967291";
  EXPECT_EQ(found(variables).size, 1);
  variables["SLURM_STEP_ID"] = "4294967290";
  EXPECT_EQ(found(variables).size, 1);
}

TEST(RankFromEnvironment, ReadsPmi) {
  std::map<std::string, std::string> variables = {
      {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
  const Rank rank = found(variables);
  EXPECT_EQ(rank.rank, 1);
  EXPECT_EQ(rank.local_rank, 1);
  EXPECT_EQ(rank.address, "127.0.0.1");
  EXPECT_EQ(rank.launcher, "PMI");
  variables["MPI_LOCALNRANKS"] = "1";
  EXPECT_TRUE(mentions(refused(variables).hint, "MASTER_ADDR"));
  variables["MASTER_ADDR"] = "n1";
  EXPECT_TRUE(mentions(refused(variables).hint, "MASTER_PORT"));
  variables.erase("MPI_LOCALRANKID");
  EXPECT_TRUE(mentions(refused(variables).message, "MPI_LOCALRANKID is not set"));
}

TEST(RankFromEnvironment, MpichWithinAnSrunStepOfItsHelpersIsPmi) {
  auto variables = kSlurm;
  variables["SLURM_PROCID"] = "0";
  variables["SLURM_STEP_NUM_TASKS"] = "1";
  variables.insert({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(found(variables).launcher, "PMI");
  auto same = kSlurm;  // srun --mpi=pmi2
  same.insert({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}});
  EXPECT_EQ(found(same).launcher, "Slurm");
}

TEST(FirstHost, ExpandsSlurmsShortForm) {
  EXPECT_EQ(first_host("node[01-03,7],login"), "node01");
  EXPECT_EQ(first_host("node7,node8"), "node7");
  EXPECT_EQ(first_host("rack[2-3]n[10,12]-ib"), "rack2n10-ib");
  EXPECT_EQ(first_host("n"), "n");
  EXPECT_EQ(first_host(""), "");
}

}  // namespace
}  // namespace ergometer::workload
