// Jobs as sacct and scontrol of Slurm 22.05 print them, and what ergometerd writes of a job.
#include "cluster/slurm_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cluster/job_record.hpp"

namespace ergometer {
namespace {

std::string sacct_text(const std::string& lines) {
  std::string titles = kSacctColumns;
  for (auto& c : titles)
    if (c == ',') c = '|';
  return titles + "\n" + lines;
}

TEST(SlurmJob, F87_MemoryOfAJobInEveryForm) {
  EXPECT_EQ(job_memory_bytes("   TRES=cpu=16,mem=60G,node=1,billing=16"), 64424509440.0);
  EXPECT_EQ(job_memory_bytes("   AllocTRES=cpu=4,mem=7500M,node=1"), 7864320000.0);
  EXPECT_NEAR(job_memory_bytes("   NumNodes=2\n   AllocTRES=cpu=4,mem=1.50T,node=2\n").value_or(0), 1649267441664.0, 1);
  EXPECT_EQ(job_memory_bytes("cpu=4,mem=2G,node=1"), 2147483648.0);  // of sacct
  EXPECT_EQ(job_memory_bytes("mem=512"), 536870912.0);               // bare numbers are MiB
  EXPECT_EQ(job_memory_bytes("   TRES=cpu=2,node=1,billing=2"), std::nullopt);
  EXPECT_EQ(job_memory_bytes("   ReqTRES=cpu=2,mem=9G"), std::nullopt);  // what was asked for is not what was given
  EXPECT_EQ(job_memory_bytes(""), std::nullopt);
}

TEST(SlurmJob, StepsBelongToTheirJob) {
  const auto jobs = parse_sacct(sacct_text(
      "12|12|ada|physics|train|main|test|RUNNING|n[1-3]|1700000000|Unknown|60|billing=6,cpu=6,gres/"
      "gpu=6,mem=12G,node=3|0||0:0\n"
      "12.batch|12.batch||physics|batch|||RUNNING|n1|1700000000|Unknown|60|cpu=2,mem=4G,node=1||1|0:0\n"
      "12.extern|12.extern||physics|extern|||RUNNING|n[1-3]|1700000000|Unknown|60|||3|0:0\n"
      "12.0|12.0||physics|python3|||COMPLETED|n[1-3]|1700000010|1700000050|40|cpu=6|300000|6|0:0\n"
      "13|12_3|ada|physics|train|main|test|CANCELLED by 1000|None assigned|Unknown|1700000000|0||0||0:15\n"));
  ASSERT_EQ(jobs.size(), 2u);
  const auto& job = jobs[0];
  EXPECT_TRUE(job.running());
  EXPECT_EQ(job.nodes, "n[1-3]");
  EXPECT_EQ(job.tres.at("gres/gpu"), 6);
  EXPECT_EQ(job.consumed_j, std::nullopt);  // 0 is what Slurm prints where it knows none
  ASSERT_EQ(job.steps.size(), 2u);          // extern runs nothing of the user's
  EXPECT_EQ(job.steps[0].name, "batch");
  EXPECT_EQ(job.steps[1].consumed_j, 300000.0);
  EXPECT_EQ(job.steps[1].end, wall_ns(1700000050'000000000));
  EXPECT_EQ(jobs[1].shown, "12_3");
  EXPECT_EQ(jobs[1].state, "CANCELLED");
  EXPECT_EQ(jobs[1].nodes, "");
  EXPECT_FALSE(jobs[1].begin);
}

TEST(SlurmJob, ARequeuedJobIsOneJob) {
  const auto jobs =
      parse_sacct(sacct_text("7|7|ada|a|x|main|test|REQUEUED|n1|1700000000|1700000030|30|cpu=1|100||0:0\n"
                             "7.batch|7.batch||a|batch|||CANCELLED|n1|1700000000|1700000030|30|cpu=1|100|1|0:15\n"
                             "7|7|ada|a|x|main|test|COMPLETED|n2|1700000100|1700000150|50|cpu=1|200||0:0\n"));
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].lives, 2);
  EXPECT_EQ(jobs[0].state, "COMPLETED");
  EXPECT_EQ(jobs[0].elapsed_s, 80);  // not the wait between its lives
  EXPECT_EQ(jobs[0].consumed_j, 300.0);
  EXPECT_EQ(jobs[0].begin, wall_ns(1700000000'000000000));
  EXPECT_EQ(jobs[0].end, wall_ns(1700000150'000000000));
  EXPECT_EQ(jobs[0].steps.size(), 1u);
}

TEST(SlurmJob, ValuesThatSlurmDoesNotHaveAreUnset) {
  for (const std::string none : {"", "0", "4294967294", "18446744073709551614"}) {
    const auto jobs =
        parse_sacct(sacct_text("1|1|u|a|x|p|c|COMPLETED|n1|1700000000|1700000001|1|cpu=1|" + none + "||0:0\n"));
    ASSERT_EQ(jobs.size(), 1u);
    EXPECT_EQ(jobs[0].consumed_j, std::nullopt) << none;
  }
  EXPECT_TRUE(parse_sacct("").empty());
  EXPECT_TRUE(parse_sacct(sacct_text("1|2|3\n\n|||||||||||||||\n")).empty());
}

TEST(SlurmJob, ScontrolTellsOfLivingJobs) {
  const auto jobs = parse_scontrol_jobs(
      "JobId=2 ArrayJobId=1 ArrayTaskId=5 JobName=wrap UserId=games(5) GroupId=games(60) Account=(null) "
      "JobState=RUNNING "
      "Restarts=1 ExitCode=0:0 RunTime=00:00:01 StartTime=2026-11-30T22:20:53 EndTime=2027-11-30T22:20:53 "
      "Partition=main "
      "ReqNodeList=(null) NodeList=n[1-2] NumNodes=2 TRES=cpu=4,mem=8G,node=2\n\n");
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].shown, "1_5");
  EXPECT_EQ(jobs[0].user, "games");
  EXPECT_EQ(jobs[0].account, "");
  EXPECT_EQ(jobs[0].nodes, "n[1-2]");
  EXPECT_EQ(jobs[0].lives, 2);
  EXPECT_TRUE(jobs[0].running());  // the end that scontrol prints is its time limit
  EXPECT_EQ(jobs[0].memory_bytes, 8589934592.0);
}

TEST(DaemonJobRecord, IsReadAsAPartOfTheJob) {
  const auto record = parse_daemon_record(
      R"({"schema":"ergometer.job-part/1","job":"12","uid":1000,"user":"ada","node":"n1","exclusive":false,"attempt":0,"state":"running",
          "begin_ns":5,"end_ns":60000000005,"begin_unix_ns":1700000000000000000,"end_unix_ns":1700000060000000000,"interval_ns":10000000000,
          "boot_id":"b","version":"0.1.0","others":[{"job":"13","overlap_s":4.5}],
          "domains":[{"domain":"package/0","device":"p","scope":"package","method":"counter","measured":true,"energy_j":6000,
                      "uncertainty_j":12,"coverage":0.9,"mean_power_w":111,"max_power_w":null,"in_total":true}]})",
      "n1.json");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->part.source, JobPart::Source::daemon);
  EXPECT_FALSE(record->part.complete);
  EXPECT_EQ(record->part.end - record->part.begin, std::chrono::seconds(60));
  ASSERT_EQ(record->part.domains.size(), 1u);
  EXPECT_EQ(record->part.domains[0].energy_j, 6000.0);
  EXPECT_EQ(record->part.domains[0].max_power_w, std::nullopt);
  ASSERT_EQ(record->warnings.size(), 1u);
  EXPECT_EQ(record->warnings[0].code, "node-shared");
  EXPECT_FALSE(parse_daemon_record("{}", "n1.json"));
  EXPECT_FALSE(parse_daemon_record(R"({"schema":"ergometer.job-part/1","node":"n1","begin_unix_ns":9,"end_unix_ns":3})",
                                   "n1.json"));
}

}  // namespace
}  // namespace ergometer
