#include <gtest/gtest.h>

#include "device/nvml/checks.hpp"
#include "device/nvml/query.hpp"

namespace ergometer::nvml {
namespace {

TEST(NvmlChecks, F115_BlankMarkers) {
  for (std::uint64_t raw = 9223372036854775792U; raw <= 9223372036854775798U; ++raw) EXPECT_TRUE(is_blank(raw)) << raw;
  for (std::uint64_t raw = 2147483632U; raw <= 2147483638U; ++raw) EXPECT_TRUE(is_blank(raw)) << raw;
  EXPECT_TRUE(is_blank(std::uint64_t{4294967295U}));
  EXPECT_TRUE(is_blank(std::uint64_t{18446744073709551615U}));
  EXPECT_TRUE(is_blank(140737488355328.0));
  EXPECT_FALSE(is_blank(std::uint64_t{2147483631U}));
  EXPECT_FALSE(is_blank(std::uint64_t{69437}));
  EXPECT_FALSE(is_blank(std::uint64_t{0}));
  EXPECT_FALSE(is_blank(140737488355327.0));
}

TEST(NvmlChecks, F115_BlankCellIsMissing) {
  Cells cells({"a", "b", "c"});
  cells.begin();
  cells.put(0, std::uint64_t{4294967295U}, 4294967.295, kNoLimit);
  cells.put(1, 140737488355328.0, kNoLimit);
  cells.put(2, std::uint64_t{69437}, 69.437, kNoLimit);
  EXPECT_EQ(cells[0], std::nullopt);
  EXPECT_EQ(cells[1], std::nullopt);
  EXPECT_EQ(cells[2], 69.437);
}

TEST(NvmlChecks, F116_OneEventABurstWithItsCount) {
  Cells cells({"gpu_active_ratio"});
  Readings out;
  for (const double value : {0.5, 42949672.95, 1.01, 0.55, 0.6}) {
    cells.begin();
    cells.put(0, value, 1);
    cells.finish(out);
  }
  ASSERT_EQ(out.events.size(), 1U);
  EXPECT_EQ(out.events[0].kind, "rejected");
  EXPECT_EQ(out.events[0].detail, "gpu_active_ratio: 2 readings in a row rejected; the last: 1.01 is outside 0 to 1");
}

TEST(NvmlChecks, F116_BurstThatGoesOnIsReportedNowAndThen) {
  Cells cells({"power_w"});
  Readings out;
  for (int i = 0; i < 250; ++i) {
    cells.begin();
    cells.put(0, 1e9, 900);
    cells.finish(out);
  }
  EXPECT_EQ(out.events.size(), 2U);  // at 10 and at 100
}

TEST(NvmlChecks, MissingAnswerDoesNotEndABurst) {
  Cells cells({"power_w"});
  Readings out;
  cells.begin();
  cells.put(0, 1e9, 900);
  cells.finish(out);
  cells.begin();  // nothing came this time
  cells.finish(out);
  EXPECT_TRUE(out.events.empty());
  cells.begin();
  cells.put(0, 100.0, 900);
  cells.finish(out);
  EXPECT_EQ(out.events.size(), 1U);
}

TEST(NvmlChecks, NotANumberIsMissing) {
  Cells cells({"x"});
  cells.begin();
  cells.put(0, std::numeric_limits<double>::quiet_NaN(), kNoLimit);
  EXPECT_EQ(cells[0], std::nullopt);
  cells.put(0, -1.0, kNoLimit);
  EXPECT_EQ(cells[0], std::nullopt);
}

}  // namespace
}  // namespace ergometer::nvml
