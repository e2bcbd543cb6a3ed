// Tables with a row a run: Zeus's and codecarbon's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/import/import.hpp"

namespace ergometer::foreign {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

StudyTable study_of(std::string_view text, const std::string& source = "file.csv") {
  auto imported = import_text(text, source);
  if (!imported) {
    ADD_FAILURE() << imported.error().message;
    return {};
  }
  return std::get<StudyTable>(*imported);
}

constexpr const char* kZeus =
    "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"
    "d,n,32,adam,250,10,200\nd,n,32,adam,100,20,90\nd,n,8,adam,100,30,80\nd,n,32,adam,250,12,210\n";

TEST(StudyCsv, ZeusPowerTrace) {
  const auto t = study_of(kZeus);
  ASSERT_EQ(t.factors.size(), 5U);
  EXPECT_EQ(t.factors[4].name, "power_limit");
  EXPECT_THAT(t.factors[4].levels, ElementsAre("100W", "250W"));
  EXPECT_THAT(t.factors[2].levels, ElementsAre("8", "32"));
  EXPECT_EQ(t.cells.size(), 3U);
  ASSERT_EQ(t.runs.size(), 4U);
  EXPECT_EQ(t.runs[3].cell, t.runs[0].cell);
  EXPECT_EQ(t.runs[3].repetition, 1);
  EXPECT_EQ(t.factors[4].levels[t.cells[t.runs[0].cell].levels[4]], "250W");
  EXPECT_EQ(t.runs[0].metrics.at("energy_per_epoch_j").value, 2000);
  EXPECT_EQ(t.runs[0].verdict, Verdict::valid);
}

TEST(StudyCsv, ZeusWindows) {
  const auto t = study_of(
      "start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy\n"
      "1706708712.0,epoch,10.0,2000,1900\n1706708722.0,epoch,10.5,2100,\n1706708733.0,eval,1,100,90\n");
  EXPECT_THAT(t.factors[0].levels, ElementsAre("epoch", "eval"));
  EXPECT_EQ(t.runs[0].metrics.at("energy_j").value, 3900);
  EXPECT_FALSE(t.runs[1].metrics.contains("energy_j")) << "a sum with a part missing is no sum";
  EXPECT_EQ(t.runs[1].metrics.at("gpu0_energy_j").value, 2100);
}

TEST(StudyCsv, Codecarbon) {
  const auto t = study_of(
      "timestamp,project_name,run_id,duration,emissions,emissions_rate,cpu_power,gpu_power,ram_power,cpu_energy,gpu_energy,"
      "ram_energy,energy_consumed,country_name,cpu_model,gpu_model,tracking_mode\n"
      "2024-01-31T13:45:12,train,a,3600,0.05,1e-5,42.5,0.0,3,0.0425,0.0,0.003,0.0455,Germany,Xeon,,machine\n");
  ASSERT_EQ(t.runs.size(), 1U);
  const auto& metrics = t.runs[0].metrics;
  EXPECT_NEAR(metrics.at("energy_j").value, 0.0455 * 3.6e6, 1e-6);
  EXPECT_NEAR(metrics.at("cpu_energy_j").value, 153000, 1e-6);
  EXPECT_FALSE(metrics.contains("gpu_energy_j")) << "codecarbon writes 0 for what it did not measure";
  EXPECT_EQ(metrics.at("emissions_kg").value, 0.05);
  ASSERT_EQ(t.warnings.size(), 1U);
  EXPECT_EQ(t.warnings[0].code, "import-estimates");
}

TEST(StudyCsv, DamagedRowsAreCounted) {
  const auto t = study_of(std::string(kZeus) + "d,n,32,adam,250,ten,200\nd,n,32\nd,n,32,adam,250,,\n");
  EXPECT_EQ(t.runs.size(), 5U);
  EXPECT_EQ(t.runs[4].verdict, Verdict::missing);
  ASSERT_EQ(t.warnings.size(), 2U);
  EXPECT_THAT(t.warnings[0].message, HasSubstr("first: line 6"));
  EXPECT_THAT(t.warnings[1].message, HasSubstr("first: line 7"));
  const auto none = import_text("time_per_epoch,average_power\nx,y\n", "bad.csv");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("no row that can be read"));
}

TEST(StudyCsv, SeveralFilesBecomeAFactor) {
  std::vector<std::pair<std::string, StudyTable>> studies;
  studies.emplace_back("a40", study_of(kZeus));
  studies.emplace_back("v100", study_of("network,power_limit,time_per_epoch,average_power\nn,100,5,50\nn,300,4,90\n"));
  const auto t = join_studies(std::move(studies));
  EXPECT_EQ(t.factors[0].name, "file");
  EXPECT_THAT(t.factors[0].levels, ElementsAre("a40", "v100"));
  EXPECT_THAT(t.factors[5].levels, ElementsAre("100W", "250W", "300W"));
  ASSERT_EQ(t.runs.size(), 6U);
  const auto& last = t.cells[t.runs[5].cell].levels;
  EXPECT_EQ(last[0], 1U);
  EXPECT_EQ(t.factors[5].levels[last[5]], "300W");
  EXPECT_EQ(t.factors[1].levels[last[1]], "") << "that file has no data set";
  EXPECT_EQ(t.runs[5].metrics.at("energy_per_epoch_j").value, 360);
}

}  // namespace
}  // namespace ergometer::foreign
