// The tables of protocol 2 on a small study of two node classes whose answers are known.
#include "analysis/p2.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/build_study.hpp"

namespace ergometer {
namespace {

using ::testing::HasSubstr;

// Energy a sample: the CPU class 2 J at any batch; the GPU class 8 J, then 0.5 J.
StudyTable two_classes() {
  StudyTable t = test::full_design({test::name_factor("node_class", {"cpu", "gpu4"}),
                                    test::name_factor("phase", {"training", "inference"}),
                                    test::number_factor("batch", "", {1, 16})});
  t.metrics = {{"duration_s", "", "s", true},           {"energy_j", "", "J", true},
               {"gpu_energy_j", "", "J", true},         {"cpu_energy_j", "", "J", true},
               {"energy_per_sample_j", "", "J", true},  {"gpu_active_ratio", "", "", true}};
  for (std::size_t cell = 0; cell < 8; ++cell) {
    const auto& l = t.cells[cell].levels;
    StudyRun run;
    run.cell = cell;
    run.verdict = Verdict::valid;
    run.metrics["duration_s"] = {100, {}};
    run.metrics["energy_j"] = {l[0] == 0 ? 20000.0 : 90000.0, {}};
    run.metrics["cpu_energy_j"] = {15000, {}};
    run.metrics["energy_per_sample_j"] = {l[0] == 0 ? 2 : (l[2] == 0 ? 8 : 0.5), {}};
    if (l[0] == 1) {
      run.metrics["gpu_energy_j"] = {67500, {}};
      run.metrics["gpu_active_ratio"] = {0.9, {}};
    }
    t.runs.push_back(run);
  }
  return t;
}

TEST(P2, RowsAndShares) {
  const auto tables = p2_tables(two_classes());
  ASSERT_TRUE(tables) << tables.error().message;
  ASSERT_EQ(tables->rows.size(), 8U);
  const auto& row = tables->rows[6];
  EXPECT_EQ(row.node_class, "gpu4");
  EXPECT_EQ(row.phase, "inference");
  EXPECT_EQ(row.mean_power_w, 900);
  EXPECT_NEAR(row.component_shares.at("gpu"), 0.75, 1e-12);
  EXPECT_NEAR(row.component_shares.at("cpu"), 1.0 / 6, 1e-12);
  EXPECT_FALSE(row.component_shares.contains("dram")) << "what was not measured has no share";
  EXPECT_FALSE(tables->rows[0].component_shares.contains("gpu"));
}

TEST(P2, RuntimeIsNoProxyBetweenClasses) {
  StudyTable t = two_classes();
  const auto unknown = p2_tables(t);
  ASSERT_EQ(unknown->ratios.size(), 4U);
  EXPECT_NEAR(unknown->ratios[0].energy_ratio, 20.0 / 90, 1e-12);
  EXPECT_EQ(unknown->ratios[0].runtime_ratio, 1);
  EXPECT_NEAR(unknown->ratios[0].proxy_error, 20.0 / 90 - 1, 1e-12);
  EXPECT_FALSE(unknown->ratios[0].runtime_is_proxy) << "one run each tells nothing of chance";
  for (auto& run : t.runs)
    for (auto& [name, metric] : run.metrics) metric.uncertainty = 0.01 * metric.value;
  EXPECT_EQ(p2_tables(t)->ratios[0].runtime_is_proxy, false);
  for (auto& run : t.runs) run.metrics["energy_j"] = {20000, 500};
  EXPECT_EQ(p2_tables(t)->ratios[0].runtime_is_proxy, true);
}

TEST(P2, BreakEvenLiesOnTheLogScale) {
  const auto tables = p2_tables(two_classes());
  ASSERT_EQ(tables->break_even.size(), 1U);
  const auto& b = tables->break_even[0];
  EXPECT_EQ(b.kind, BreakEven::Kind::at_batch);
  // The ratio goes from 4 to 1/4 between 1 and 16: it is 1 at 4.
  EXPECT_NEAR(b.batch.value(), 4, 1e-9);
  EXPECT_EQ(b.low, 1);
  EXPECT_EQ(b.high, 16);
  StudyTable t = two_classes();
  for (auto& run : t.runs)
    if (t.cells[run.cell].levels[0] == 1) run.metrics["energy_per_sample_j"] = {0.1, {}};
  EXPECT_EQ(p2_tables(t)->break_even[0].kind, BreakEven::Kind::gpu_always);
  EXPECT_FALSE(p2_tables(t)->break_even[0].batch);
}

TEST(P2, IdleAcceleratorsHaveAPenalty) {
  StudyTable t = two_classes();
  auto& run = t.runs[6];
  run.metrics["gpu_active_ratio"] = {0, {}};
  run.metrics["gpu_energy_j"] = {30000, {}};
  const auto tables = p2_tables(t);
  ASSERT_EQ(tables->idle.size(), 1U);
  EXPECT_NEAR(tables->idle[0].share, 1.0 / 3, 1e-12);
  EXPECT_NEAR(tables->idle[0].penalty, 0.5, 1e-12) << "90 kJ where 60 kJ would do";
}

TEST(P2, SaysWhatATableNeeds) {
  StudyTable t = two_classes();
  for (auto& run : t.runs) run.metrics.erase("gpu_active_ratio");
  std::erase_if(t.runs, [&](const StudyRun& run) { return t.cells[run.cell].levels[0] == 0; });
  const auto tables = p2_tables(t);
  ASSERT_TRUE(tables);
  EXPECT_TRUE(tables->ratios.empty());
  ASSERT_EQ(tables->missing.size(), 3U);
  EXPECT_THAT(tables->missing[0], HasSubstr("two node classes"));
  EXPECT_THAT(tables->missing[1], HasSubstr("gpu_active_ratio"));
  EXPECT_THAT(tables->missing[2], HasSubstr("with and without GPUs"));
  t.factors[0].name = "host";
  EXPECT_THAT(p2_tables(t).error().message, HasSubstr("no factor \"node_class\""));
}

}  // namespace
}  // namespace ergometer
