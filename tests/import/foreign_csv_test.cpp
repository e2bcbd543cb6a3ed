// CSV of other programs: separators, quotes, units, words for missing.
#include "store/import/foreign_csv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ergometer::foreign {
namespace {

using ::testing::ElementsAre;

TEST(ForeignCsv, SeparatorsQuotesCommentsAndLineEnds) {
  const std::string text = "\xEF\xBB\xBF# a comment\n\na; \"b;c\" ;d\r\n1;\"x \"\"y\"\" z\";\r\n\n# more\n2;3\n4;5;6";
  auto csv = ForeignCsv::open(text, "FILE");
  ASSERT_TRUE(csv);
  EXPECT_THAT(csv->header(), ElementsAre("a", "b;c", "d"));
  EXPECT_TRUE(csv->decimal_comma());
  std::vector<std::string_view> fields;
  ASSERT_TRUE(csv->next(fields));
  EXPECT_THAT(fields, ElementsAre("1", "x \"y\" z", ""));
  EXPECT_EQ(csv->line(), 4U);
  ASSERT_TRUE(csv->next(fields));
  EXPECT_THAT(fields, ElementsAre("4", "5", "6"));
  EXPECT_FALSE(csv->next(fields));
  EXPECT_EQ(csv->left_out(), 1U);
  EXPECT_EQ(csv->first_left_out(), 7U);
  csv->rewind();
  ASSERT_TRUE(csv->next(fields));
  EXPECT_EQ(fields[0], "1");
}

TEST(ForeignCsv, NothingInItIsAnError) {
  for (const char* text : {"", "\n\n", "# only\n", "   "}) EXPECT_FALSE(ForeignCsv::open(text, "FILE")) << text;
}

TEST(ForeignCsv, NamesAndUnitsOfColumns) {
  const auto expect = [](const char* header, const char* name, const char* unit) {
    EXPECT_EQ(column_name(header).name, name) << header;
    EXPECT_EQ(column_name(header).unit, unit) << header;
  };
  expect("power.draw [W]", "power_draw", "W");
  expect("power_draw_W", "power_draw", "w");
  expect("utilization_gpu_pct", "utilization_gpu", "pct");
  expect("memory.used [MiB]", "memory_used", "MiB");
  expect("memory_free_MiB", "memory_free", "mib");
  expect("timestamp", "timestamp", "");
  expect("GPU Power (mW)", "gpu_power", "mW");
}

TEST(ForeignCsv, NumbersWithUnits) {
  const auto value = [](const char* field, const char* unit, UnitKind kind, bool comma = false) {
    return foreign_number(field, unit, kind, comma).value;
  };
  EXPECT_EQ(value("61.23 W", "W", UnitKind::power), 61.23);
  EXPECT_NEAR(*value("61230 mW", "W", UnitKind::power), 61.23, 1e-12);
  EXPECT_NEAR(*value("61230", "mW", UnitKind::power), 61.23, 1e-12);
  EXPECT_EQ(value("61,23", "W", UnitKind::power, true), 61.23);
  EXPECT_EQ(value("50 %", "%", UnitKind::ratio), 0.5);
  EXPECT_EQ(value("1024 MiB", "MiB", UnitKind::bytes), 1073741824.0);
  EXPECT_EQ(value("1.5GiB", "MiB", UnitKind::bytes), 1610612736.0);
  EXPECT_EQ(value("1410 MHz", "MHz", UnitKind::frequency), 1.41e9);
  EXPECT_EQ(value("0", "W", UnitKind::power), 0.0) << "a zero that was read stays one";
}

TEST(ForeignCsv, MissingIsNoNumberAndNoFault) {
  for (const char* field : {"", "N/A", "[N/A]", "[Not Supported]", "[Unknown Error]", "[GPU is lost]", "nan", "-", "ERR!"}) {
    const auto number = foreign_number(field, "W", UnitKind::power, false);
    EXPECT_FALSE(number.value) << field;
    EXPECT_TRUE(number.readable) << field;
  }
  for (const char* field : {"many", "12 %", "1,5", "12 W W", "inf"})
    EXPECT_FALSE(foreign_number(field, "W", UnitKind::power, false).readable) << field;
}

}  // namespace
}  // namespace ergometer::foreign
