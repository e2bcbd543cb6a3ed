#include "base/number.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <clocale>
#include <limits>
#include <locale>

namespace ergometer {
namespace {

using namespace std::chrono_literals;

TEST(Number, WholeTextOrNothing) {
  EXPECT_EQ(parse_double(" 1.5e-3\n"), 0.0015);
  EXPECT_EQ(parse_double("+2"), 2.0);
  EXPECT_EQ(parse_double("-0.25"), -0.25);
  for (const char* bad : {"", " ", "1,5", "1.5x", "0x10", "nan", "inf", "1e999", "N/A", "[N/A]", "--1", "+-1", "1 2"})
    EXPECT_FALSE(parse_double(bad)) << bad;
  EXPECT_EQ(parse_int("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_FALSE(parse_int("9223372036854775808"));
  EXPECT_FALSE(parse_int("1.0"));
  EXPECT_EQ(parse_uint("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(parse_uint("-1"));
}

TEST(Number, F118_LargeMicrowatts) {
  EXPECT_EQ(parse_double("3408250000").value() * 1e-6, 3408.25);
  EXPECT_DOUBLE_EQ(parse_double("262143999938").value() * 1e-6, 262143.999938);
}

TEST(Number, Durations) {
  EXPECT_EQ(parse_duration("100ms"), Nanos(100ms));
  EXPECT_EQ(parse_duration("5s"), Nanos(5s));
  EXPECT_EQ(parse_duration("20us"), Nanos(20us));
  EXPECT_EQ(parse_duration("2min"), Nanos(2min));
  EXPECT_EQ(parse_duration("1.5h"), Nanos(90min));
  EXPECT_EQ(parse_duration("7ns"), Nanos(7));
  for (const char* bad : {"5", "", "s", "-1s", "5 m", "5sec", "1e30h", "nans"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(Number, ShortestTextReadsBackTheSame) {
  for (const double value : {0.1, 1234567.5, 1e-9, 0.30000000000000004, 1.7976931348623157e308, -0.0, 5e-324})
    EXPECT_EQ(parse_double(format_double(value)), value);
  EXPECT_EQ(format_double(1234567.5), "1234567.5");
  EXPECT_EQ(format_double(1440000), "1440000");
}

TEST(Number, F103_NotFiniteIsMissing) {
  EXPECT_EQ(format_double(std::numeric_limits<double>::quiet_NaN()), "");
  EXPECT_EQ(format_double(std::numeric_limits<double>::infinity()), "");
  std::string out = "x,";
  append_double(out, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(out, "x,");
}

// A locale like the German one, whether or not the machine has that.
struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

class HostLocale {
 public:
  HostLocale() {
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
      if (std::setlocale(LC_ALL, name)) break;
    before_ = std::locale::global(std::locale(std::locale::classic(), new Comma));
  }
  ~HostLocale() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, "C");
  }

 private:
  std::locale before_;
};

TEST(Number, F110_HostLocaleDoesNotCutNumbers) {
  const HostLocale german;
  EXPECT_EQ(parse_double("0.25"), 0.25);
  EXPECT_EQ(parse_double("212.5"), 212.5);
  EXPECT_EQ(parse_double("1.5e-3"), 0.0015);
  EXPECT_EQ(parse_duration("0.25s"), Nanos(250ms));
}

TEST(Number, F111_HostLocaleDoesNotChangeOutput) {
  const HostLocale german;
  EXPECT_EQ(format_double(1234567.5), "1234567.5");
  std::string whole;
  append_int(whole, 1234567);
  EXPECT_EQ(whole, "1234567");
  EXPECT_EQ(fmt::format("{:.1f}", 1234567.5), "1234567.5");
}

}  // namespace
}  // namespace ergometer
