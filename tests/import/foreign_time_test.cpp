// Times of other programs: forms, locales, and what is refused.
#include "store/import/foreign_time.hpp"

#include <gtest/gtest.h>

namespace ergometer::foreign {
namespace {

constexpr std::int64_t kMoment = 1706708712345000000;  // 2024-01-31 13:45:12.345 UTC

std::int64_t ns_of(std::string_view text, DateOrder order = DateOrder::unknown) {
  const auto time = parse_foreign_time(text, order);
  return time ? time->unix_ns : -1;
}

TEST(ForeignTime, FormsOfOneMoment) {
  for (const char* text : {"2024/01/31 13:45:12.345", "2024-01-31T13:45:12.345Z", "2024-01-31 13:45:12,345",
                           "31.01.2024 13:45:12,345", "31/01/2024 13:45:12.345", "1/31/2024 1:45:12.345 PM",
                           "31.01.24 13:45:12.345", "2024-01-31T14:45:12.345+01:00", "2024-01-31 08:45:12.345 -0500",
                           "1/31/2024, 1:45:12.345 pm", "1706708712.345", "1706708712345", "1706708712345000",
                           "1706708712345000000", " 2024/01/31 13:45:12.345 ", "1706708712,345"})
    EXPECT_EQ(ns_of(text), kMoment) << text;
}

TEST(ForeignTime, DayAndMonthChangePlacesByTheOrder) {
  EXPECT_EQ(ns_of("02/01/2024 00:00:00", DateOrder::day_first), 1704153600000000000);
  EXPECT_EQ(ns_of("02/01/2024 00:00:00", DateOrder::month_first), 1706745600000000000);
  EXPECT_EQ(order_told_by("31/01/2024 00:00"), DateOrder::day_first);
  EXPECT_EQ(order_told_by("01/31/2024 00:00"), DateOrder::month_first);
  EXPECT_EQ(order_told_by("02.01.2024 00:00"), DateOrder::day_first);
  EXPECT_EQ(order_told_by("01/02/2024 00:00"), DateOrder::unknown);
  EXPECT_EQ(order_told_by("2024/01/31 00:00"), DateOrder::unknown);
}

TEST(ForeignTime, NoonAndMidnight) {
  EXPECT_EQ(ns_of("1/31/2024 12:00:00 AM"), ns_of("2024/01/31 00:00:00"));
  EXPECT_EQ(ns_of("1/31/2024 12:30 PM"), ns_of("2024/01/31 12:30:00"));
}

TEST(ForeignTime, SecondsSinceABeginning) {
  const auto time = parse_foreign_time("12.5", DateOrder::unknown);
  ASSERT_TRUE(time);
  EXPECT_TRUE(time->relative);
  EXPECT_EQ(time->unix_ns, 12500000000);
}

TEST(ForeignTime, WhatIsNoTime) {
  for (const char* text : {"", "N/A", "2024/02/30 10:00:00", "2024/13/01 10:00:00", "2024/01/31", "2024/01/31 25:00:00",
                           "2024/01/31 10:61:00", "13:45:12", "2024/01-31 10:00:00", "2024/01/31 10:00:00 x",
                           "1/31/2024 13:00 PM", "-5", "nan", "1e400", "99999999999999999999999", "31/31/2024 10:00:00"})
    EXPECT_EQ(ns_of(text), -1) << text;
}

}  // namespace
}  // namespace ergometer::foreign
