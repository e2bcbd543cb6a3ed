// nvidia-smi logs in any order of columns, unit and locale; the Supercloud GPU form; and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/import/import.hpp"
#include "store/run_reader.hpp"
#include "support/temp_dir.hpp"

namespace ergometer::foreign {
namespace {

using ::testing::HasSubstr;

ImportedLog log_of(std::string_view text, const ImportOptions& options = {}) {
  auto imported = import_text(text, "smi.csv", options);
  if (!imported) {
    ADD_FAILURE() << imported.error().message;
    return {};
  }
  return std::get<std::vector<ImportedLog>>(*imported).at(0);
}

Error error_of(std::string_view text) {
  const auto imported = import_text(text, "smi.csv");
  return imported ? Error{ErrorCode::internal, "no error", ""} : imported.error();
}

std::string all_warnings(const ImportedLog& log) {
  std::string out;
  for (const auto& w : log.warnings) out += w.code + ": " + w.message + "\n";
  return out;
}

TEST(GpuLog, AsNvidiaSmiWritesIt) {
  const auto log = log_of(
      "timestamp, index, name, uuid, power.draw [W], utilization.gpu [%], memory.used [MiB], pstate\n"
      "2024/01/31 13:45:12.345, 0, NVIDIA A100, GPU-aa, 61.23 W, 50 %, 1024 MiB, P0\n"
      "2024/01/31 13:45:12.345, 1, NVIDIA A100, GPU-bb, [N/A], 0 %, 4 MiB, P0\n"
      "2024/01/31 13:45:12.445, 0, NVIDIA A100, GPU-aa, 62.00 W, 51 %, 1024 MiB, P0\n"
      "2024/01/31 13:45:12.445, 1, NVIDIA A100, GPU-bb, 70.5 W, 1 %, 4 MiB, P0\n");
  EXPECT_EQ(log.format, "nvidia-smi CSV");
  ASSERT_EQ(log.traces.size(), 2U);
  const Trace& first = log.traces[0];
  EXPECT_EQ(first.info.name, "gpu0");
  ASSERT_EQ(first.info.channels.size(), 3U);
  EXPECT_EQ(first.info.channels[0].column, "power_w");
  EXPECT_EQ(first.info.channels[0].domain, "gpu/0");
  EXPECT_EQ(first.info.channels[0].device, "GPU-aa");
  EXPECT_EQ(first.info.channels[0].method, Method::integral);
  EXPECT_EQ(first.t_ns[0], 1706708712345000000);
  EXPECT_EQ(first.t_ns[1], 1706708712445000000);
  EXPECT_EQ(first.columns[0][0], 61.23);
  EXPECT_EQ(first.columns[1][0], 0.5);
  EXPECT_EQ(first.columns[2][0], 1024.0 * 1048576);
  EXPECT_FALSE(log.traces[1].columns[0][0]) << "[N/A] is missing, not 0";
  EXPECT_EQ(log.traces[1].columns[0][1], 70.5);
  EXPECT_EQ(log.node.gpus[1].uuid, "GPU-bb");
  EXPECT_THAT(all_warnings(log), HasSubstr("columns left out: pstate"));
  EXPECT_THAT(all_warnings(log), HasSubstr("import-zone"));
}

TEST(GpuLog, AnyOrderOfColumnsUnitsAndSeparators) {
  const auto log = log_of(
      "power.draw [mW];uuid;timestamp;temperature.gpu;clocks.sm [MHz]\n"
      "61230,5;GPU-aa;31.01.2024 13:45:12,345;40;1410\n"
      "61000;GPU-aa;31.01.2024 13:45:13,345;41;1400\n");
  ASSERT_EQ(log.traces.size(), 1U);
  EXPECT_NEAR(*log.traces[0].columns[0][0], 61.2305, 1e-12);
  EXPECT_EQ(log.traces[0].columns[2][1], 1.4e9);
  EXPECT_EQ(log.traces[0].t_ns[0], 1706708712345000000);
}

// The field was renamed between driver branches, and modules have a reading of their own that is not the GPU's.
TEST(GpuLog, F53_AverageInstantAndModulePowerAreNotMistakenForEachOther) {
  const auto log = log_of(
      "timestamp, index, module.power.draw.instant [W], power.draw.average [W], power.draw.instant [W]\n"
      "2024/01/31 13:45:12.345, 0, [N/A], 20.00 W, 21.50 W\n"
      "2024/01/31 13:45:12.445, 0, [Not Supported], [Unknown Error], 22.50 W\n"
      "2024/01/31 13:45:12.545, 0, ERR!, 20.50 W, N/A\n");
  ASSERT_EQ(log.traces.size(), 1U);
  const Trace& gpu = log.traces[0];
  const auto column = [&](const std::string& name) -> std::size_t {
    for (std::size_t i = 0; i < gpu.info.channels.size(); ++i)
      if (gpu.info.channels[i].column == name) return i;
    ADD_FAILURE() << "no " << name;
    return 0;
  };
  const auto average = column("power_average_w"), instant = column("power_instant_w");
  EXPECT_EQ(gpu.columns[average][0], 20.0);
  EXPECT_EQ(gpu.info.channels[average].method, Method::average);
  EXPECT_EQ(gpu.columns[instant][0], 21.5);
  EXPECT_EQ(gpu.info.channels[instant].method, Method::integral);
  EXPECT_FALSE(gpu.columns[average][1]);
  EXPECT_FALSE(gpu.columns[instant][2]);
  EXPECT_EQ(gpu.info.channels.size(), 2U) << "what the module draws is not the GPU's";
}

TEST(GpuLog, OneGpuNeedsNoIndex) {
  const auto log = log_of("time,power\n1706708712.0,100\n1706708713.0,200\n");
  EXPECT_EQ(log.format, "table of time and power");
  ASSERT_EQ(log.traces.size(), 1U);
  EXPECT_EQ(log.traces[0].columns[0][1], 200);
  EXPECT_EQ(all_warnings(log), "") << "Unix times say their zone";
}

TEST(GpuLog, SupercloudForm) {
  const auto log = log_of(
      "timestamp,gpu_index,utilization_gpu_pct,utilization_memory_pct,memory_free_MiB,memory_used_MiB,temperature_gpu,"
      "temperature_memory,power_draw_W,pcie_link_width_current\n"
      "1612345678.5,0,99.0,40.0,100,32410,60,58,231.5,16\n"
      "1612345678.5,1,0.0,0.0,32510,0,30,28,25.1,16\n"
      "1612345678.6,0,98.0,41.0,100,32410,60,58,230.0,16\n");
  EXPECT_EQ(log.format, "Supercloud GPU CSV");
  ASSERT_EQ(log.traces.size(), 2U);
  EXPECT_EQ(log.traces[0].columns[5][0], 58);
  EXPECT_EQ(log.traces[0].columns[6][0], 231.5);
  EXPECT_EQ(log.traces[0].columns[0][0], 0.99);
  EXPECT_EQ(log.traces[0].t_ns[1], 1612345678600000000);
  EXPECT_THAT(all_warnings(log), ::testing::Not(HasSubstr("left out")));
}

TEST(GpuLog, SeveralGpusThatNothingTellsApartAreRefused) {
  const auto error = error_of(
      "timestamp, power.draw [W]\n2024/01/31 13:45:12.345, 61 W\n2024/01/31 13:45:12.345, 62 W\n"
      "2024/01/31 13:45:12.445, 61 W\n2024/01/31 13:45:12.445, 62 W\n");
  EXPECT_THAT(error.message, HasSubstr("no column that tells GPUs apart"));
  EXPECT_THAT(error.hint, HasSubstr("index"));
}

TEST(GpuLog, DatesThatCouldBeEitherAreAskedFor) {
  const std::string text = "timestamp,power_draw_W\n01/02/2024 10:00:00,1\n01/02/2024 10:00:01,2\n";
  EXPECT_THAT(error_of(text).message, HasSubstr("may be day or month first"));
  EXPECT_THAT(error_of(text).hint, HasSubstr("--dates dmy"));
  EXPECT_EQ(log_of(text, {DateOrder::month_first}).traces[0].t_ns[0], 1704189600000000000);
  // A later row tells it.
  const auto told = log_of("timestamp,power_draw_W\n01/01/2024 10:00:00,0\n12/01/2024 10:00:00,1\n13/01/2024 10:00:00,2\n");
  EXPECT_EQ(told.traces[0].t_ns[1], 1705053600000000000);
}

TEST(GpuLog, ClockSetBackInAutumnGoesOn) {
  const auto log = log_of(
      "timestamp,index,power.draw [W]\n2024/10/27 02:59:58.000,0,1\n2024/10/27 02:59:59.000,0,1\n"
      "2024/10/27 02:00:00.000,0,1\n2024/10/27 02:00:01.000,0,1\n");
  ASSERT_EQ(log.traces[0].rows(), 4U);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(log.traces[0].t_ns[i] - log.traces[0].t_ns[i - 1], 1000000000);
  EXPECT_THAT(all_warnings(log), HasSubstr("went back by an hour"));
}

TEST(GpuLog, DamageIsCountedAndTheRestKept) {
  const auto log = log_of(
      "timestamp,index,power.draw [W]\n2024/01/31 13:45:12.000,0,100 W\nwrong,0,5 W\n2024/01/31 13:45:13.000,0\n"
      "timestamp,index,power.draw [W]\n2024/01/31 13:45:15.000,0,lots\n2024/01/31 13:45:14.000,0,101 W\n"
      "2024/01/31 13:45:16.0");
  ASSERT_EQ(log.traces[0].rows(), 3U);
  EXPECT_EQ(log.traces[0].columns[0][1], 101);
  EXPECT_FALSE(log.traces[0].columns[0][2]);
  const auto text = all_warnings(log);
  EXPECT_THAT(text, HasSubstr("1 row left out: their time cannot be read (first: line 3)"));
  EXPECT_THAT(text, HasSubstr("2 rows left out: they have another number of fields (first: line 4)"));
  EXPECT_THAT(text, HasSubstr("first: line 6, \"lots\" in power.draw [W]"));
  EXPECT_THAT(text, HasSubstr("import-order"));
}

TEST(GpuLog, WhatIsNoLogIsSaid) {
  EXPECT_THAT(error_of("2024/01/31 13:45:12.345, 0, 61.23 W\n").message, HasSubstr("of no known form"));
  EXPECT_THAT(error_of("2024/01/31 13:45:12.345, 0, 61.23 W\n").hint, HasSubstr("with its header"));
  EXPECT_THAT(error_of("timestamp,power.draw [W]\n").message, HasSubstr("no row with a time"));
  EXPECT_THAT(error_of("").message, HasSubstr("empty"));
  EXPECT_THAT(error_of(std::string("\x00\x01\x02\xFF\n\x00", 6)).message, HasSubstr("of no known form"));
}

TEST(GpuLog, LogWithoutPowerSaysSo) {
  EXPECT_THAT(all_warnings(log_of("time,utilization_gpu_pct\n1706708712,5\n1706708713,6\n")),
              HasSubstr("no column of power"));
}

TEST(GpuLog, BecomesARunThatReadsBack) {
  const test::TempDir dir;
  auto log = log_of("time,index,power\n1706708712.0,0,100\n1706708712.0,3,50\n1706708722.0,0,100\n1706708722.0,3,50\n");
  auto other = log_of("time,index,power\n1706708714.5,0,7\n");
  Manifest manifest;
  manifest.name = "imported";
  const auto written = write_imported_run(dir / "run", {log, other}, manifest);
  ASSERT_TRUE(written) << written.error().message;
  const auto reader = RunReader::open(dir / "run");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->manifest().state, "complete");
  EXPECT_EQ(to_ns(*reader->manifest().end) - to_ns(*reader->manifest().begin), 10000000000);
  ASSERT_EQ(reader->manifest().clocks.size(), 1U);
  EXPECT_EQ(to_ns(reader->manifest().clocks[0].wall), 1706708712000000000);
  EXPECT_THAT(reader->sensors("imported"), ::testing::UnorderedElementsAre("gpu0", "gpu0-2", "gpu3"));
  const auto trace = reader->samples("imported", "gpu3");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->columns[0][1], 50);
  EXPECT_EQ(trace->t_ns[0], to_ns(*reader->manifest().begin));
  EXPECT_TRUE(reader->warnings().empty());
  EXPECT_FALSE(std::filesystem::exists(dir / "run/markers"));
  const auto again = write_imported_run(dir / "run", {log}, manifest);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::exists);
}

TEST(GpuLog, CalendarAndStopwatchDoNotMix) {
  const test::TempDir dir;
  auto wall = log_of("time,power\n1706708712,1\n"), relative = log_of("time,power\n0.5,1\n");
  EXPECT_TRUE(relative.relative);
  const auto written = write_imported_run(dir / "run", {wall, relative}, {});
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().hint, HasSubstr("apart"));
}

}  // namespace
}  // namespace ergometer::foreign
