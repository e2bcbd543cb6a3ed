#include <gtest/gtest.h>

#include "parallel/rank.hpp"
#include "processes.hpp"

namespace ergometer::workload {
namespace {

using test::eventually;
using test::Process;
using test::TempDir;

std::vector<std::string> words(const std::vector<std::string>& after) {
  std::vector<std::string> all = {ERGOMETER_LAUNCH_PROGRAM};
  all.insert(all.end(), after.begin(), after.end());
  return all;
}

bool output_contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

bool ended(long process) { return ::kill(static_cast<pid_t>(process), 0) != 0; }

// Process numbers of two ranks of the scenario "sleep"; 0 where one has not told it.
std::vector<long> sleepers(const TempDir& folder) {
  return {std::atol(folder.read("rank0").c_str()), std::atol(folder.read("rank1").c_str())};
}

bool both_sleep(const TempDir& folder) {
  const std::vector<long> processes = sleepers(folder);
  return processes[0] > 0 && processes[1] > 0;
}

TEST(RunRanks, StartsEachWithItsNumberAndTheRestOfTheArguments) {
  const TempDir folder;
  Process launcher(words({"--ranks", "2", "show", "a b", "--ranks=2", "c"}), {{"OMP_NUM_THREADS", "3"}}, folder, "run");
  ASSERT_EQ(launcher.wait(), 0) << launcher.err();
  EXPECT_EQ(launcher.out(), "rank 0 of 2 by --ranks, threads 3: show a b c\n");
  EXPECT_EQ(launcher.err(), "rank 1 of 2 by --ranks, threads 3: show a b c\n");
}

TEST(RunRanks, SharesTheProcessors) {
  const TempDir folder;
  const std::string program = ERGOMETER_LAUNCH_PROGRAM;
  Process launcher({"env", "-u", "OMP_NUM_THREADS", "taskset", "-c", "0", program, "--ranks", "2", "show"}, {}, folder,
                   "run");
  ASSERT_EQ(launcher.wait(), 0) << launcher.err();
  EXPECT_EQ(launcher.out(), "rank 0 of 2 by --ranks, threads 1: show\n");
}

TEST(RunRanks, GivesTheExitCodeOfTheFirstThatFailsAndEndsTheOthers) {
  const TempDir folder;
  Process launcher(words({"--ranks", "2", "exit", "1", "7"}), {}, folder, "run");
  EXPECT_EQ(launcher.wait(), 7) << launcher.err();
  EXPECT_TRUE(output_contains(launcher.err(), "rank 1 (process ")) << launcher.err();
  EXPECT_TRUE(output_contains(launcher.err(), ") ended with exit code 7\n")) << launcher.err();
  EXPECT_FALSE(output_contains(launcher.err(), "rank 0")) << launcher.err();
}

TEST(RunRanks, NamesTheSignalAndKillsWhatDoesNotHeedSigterm) {
  const TempDir folder;
  Process launcher(words({"--ranks", "2", "raise", "0", std::to_string(SIGKILL)}), {}, folder, "run");
  EXPECT_EQ(launcher.wait(), 128 + SIGKILL) << launcher.err();
  EXPECT_TRUE(output_contains(launcher.err(), ") was ended by signal 9 (Killed)\n")) << launcher.err();
}

TEST(RunRanks, PassesASignalOn) {
  const TempDir folder;
  Process launcher(words({"--ranks", "2", "sleep", folder.path().string()}), {}, folder, "run");
  ASSERT_TRUE(eventually([&] { return both_sleep(folder); }));
  ::kill(launcher.id(), SIGINT);
  EXPECT_EQ(launcher.wait(), 128 + SIGINT) << launcher.err();
  for (const long process : sleepers(folder)) EXPECT_TRUE(ended(process));
}

TEST(RunRanks, TheRanksEndWithTheLauncher) {
  const TempDir folder;
  Process launcher(words({"--ranks", "2", "sleep", folder.path().string()}), {}, folder, "run");
  ASSERT_TRUE(eventually([&] { return both_sleep(folder); }));
  ::kill(launcher.id(), SIGKILL);
  launcher.wait();
  for (const long process : sleepers(folder)) EXPECT_TRUE(eventually([&] { return ended(process); })) << process;
}

TEST(RunRanks, RefusesToStartRanksWithinARank) {
  const TempDir folder;
  Process launcher(words({"--ranks", "2", "show"}),
                   {{"OMPI_COMM_WORLD_RANK", "0"},
                    {"OMPI_COMM_WORLD_SIZE", "2"},
                    {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
                   folder, "run");
  EXPECT_EQ(launcher.wait(), 9);
  EXPECT_TRUE(output_contains(launcher.err(), "one of 2 ranks already")) << launcher.err();
}

TEST(RunRanks, LosesNoRankUnnoticedInTraining) {
  const TempDir folder;
  Process launcher({ERGOMETER_RANK_PROGRAM, "--ranks", "3", "lose", "2"}, {{"OMP_NUM_THREADS", "1"}}, folder, "run");
  EXPECT_EQ(launcher.wait(), 128 + SIGKILL) << launcher.err();
  EXPECT_TRUE(output_contains(launcher.err(), "rank 2 (process ")) << launcher.err();
}

}  // namespace
}  // namespace ergometer::workload
