// The Supercloud CPU form, which is Slurm's task profile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/import/import.hpp"

namespace ergometer::foreign {
namespace {

constexpr const char* kHeader =
    "Step,Node,Series,ElapsedTime,EpochTime,CPUFrequency,CPUTime,CPUUtilization,RSS,VMSize,Pages,ReadMB,WriteMB\n";

TEST(SlurmSeries, NodesAndTasks) {
  const auto imported = import_text(std::string(kHeader) +
                                        "-2,n1,Task_0,10,1612345678,2100000,9.5,950.0,2048,4096,0,1.5,0\n"
                                        "-2,n1,Task_0,20,1612345688,2100000,9.5,,2048,4096,0,0,0\n"
                                        "-2,n2,Task_1,10,1612345678,1000000,1,100,1,1,0,0,2\n",
                                    "cpu.csv");
  ASSERT_TRUE(imported) << imported.error().message;
  const auto& logs = std::get<std::vector<ImportedLog>>(*imported);
  ASSERT_EQ(logs.size(), 2U);
  EXPECT_EQ(logs[0].node.name, "n1");
  ASSERT_EQ(logs[0].traces.size(), 1U);
  const Trace& trace = logs[0].traces[0];
  EXPECT_EQ(trace.info.name, "step-2-task_0");
  EXPECT_EQ(trace.t_ns[1], 1612345688000000000);
  EXPECT_EQ(trace.columns[*trace.column("cpu_ratio")][0], 9.5);
  EXPECT_FALSE(trace.columns[*trace.column("cpu_ratio")][1]);
  EXPECT_EQ(trace.columns[*trace.column("rss_bytes")][0], 2048.0 * 1024);
  EXPECT_EQ(trace.columns[*trace.column("cpu_frequency_hz")][0], 2.1e9);
  EXPECT_EQ(trace.columns[*trace.column("read_interval_bytes")][0], 1.5e6);
}

TEST(SlurmSeries, NoRowWithATimeIsAnError) {
  const auto imported = import_text(std::string(kHeader) + "-2,n1,Task_0,10,soon,1,1,1,1,1,0,1,0\n", "cpu.csv");
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().hint, ::testing::HasSubstr("line 2"));
}

}  // namespace
}  // namespace ergometer::foreign
