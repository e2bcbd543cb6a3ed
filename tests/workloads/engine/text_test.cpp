#include "core/text.hpp"

#include <gtest/gtest.h>

#include "core/latency.hpp"

namespace ergometer::workload {
namespace {

TEST(WorkloadText, NumbersAreWholeTexts) {
  EXPECT_EQ(parse_number(" 1819.5 "), 1819.5);
  EXPECT_EQ(parse_number("+2"), 2.0);
  EXPECT_EQ(parse_number("1e3"), 1000.0);
  for (const char* text : {"", "-", "1,5", "12 MW", "nan", "inf", "0x10", "1e999"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_integer("-7"), -7);
  EXPECT_EQ(parse_integer("7.0"), std::nullopt);
}

TEST(WorkloadText, ASmallNumberNeverReadsAsNought) {
  EXPECT_EQ(short_number(0.04834), "0.0483");
  EXPECT_EQ(short_number(0.2817), "0.282");
  EXPECT_EQ(short_number(10.21), "10.2");
  EXPECT_EQ(short_number(99.96), "100");
  EXPECT_EQ(short_number(172005.4), "172005");
  EXPECT_EQ(short_number(0), "0");
}

TEST(WorkloadText, TimesAndBack) {
  EXPECT_EQ(parse_time("1970-01-01 00:00:00"), 0);
  EXPECT_EQ(parse_time("2019-01-31 23:00:00"), 1548975600);
  EXPECT_EQ(parse_time("2019-01-31T23:00"), 1548975600);
  EXPECT_EQ(parse_time("2019-01-31T23:00:00.000Z"), 1548975600);
  EXPECT_EQ(parse_time("2019-02-01 00:00:00+01:00"), 1548975600);
  EXPECT_EQ(parse_time("2019-01-31"), 1548892800);
  EXPECT_EQ(parse_time("1548975600"), 1548975600);
  EXPECT_EQ(parse_time("2016-02-29 00:00:00"), 1456704000);
  for (const char* text : {"", "2019", "2019-13-01", "2019-02-29", "2019-01-31 24:00:00", "2019-01-31 23:00:00 CET",
                           "31.01.2019 23:00", "2019-01-31 23:00:00.5", "9999999999999999999999"}) {
    if (std::string_view(text) == "2019") continue;  // a whole number of seconds
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
  for (const std::int64_t seconds : {0LL, 951782400LL, 1548975600LL, 4107542400LL, -86400LL}) {
    EXPECT_EQ(parse_time(format_time(seconds)), seconds);
  }
  EXPECT_EQ(format_time(1548975600), "2019-01-31 23:00:00");
}

TEST(WorkloadText, NearestIgnoresCase) {
  EXPECT_EQ(nearest("laod [mwh]", {"City", "Load [MWh]", "Time [s]"}), "Load [MWh]");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(WorkloadLatency, PercentilesInterpolateBetweenRanks) {
  EXPECT_DOUBLE_EQ(percentile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(percentile({1, 2, 3, 4}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(percentile({10, 20}, 0.9), 19);
  EXPECT_DOUBLE_EQ(percentile({7}, 0.99), 7);
  EXPECT_EQ(describe_latency({0.001, 0.002, 0.003}), "p50 2.00 ms, p90 2.80 ms, p99 2.98 ms");
}

}  // namespace
}  // namespace ergometer::workload
