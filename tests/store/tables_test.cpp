// regions.csv and events.csv: quoting, escapes, rows that are no rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "store/run_tables.hpp"

namespace ergometer {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Region region(std::int64_t begin, std::int64_t end, std::string path) {
  Region out;
  out.begin = mono_ns(begin);
  out.end = mono_ns(end);
  out.pid = 100;
  out.tid = 101;
  out.path = std::move(path);
  return out;
}

void expect_same(const Region& a, const Region& b) {
  EXPECT_EQ(a.begin, b.begin);
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.cut, b.cut);
  EXPECT_EQ(a.pid, b.pid);
  EXPECT_EQ(a.tid, b.tid);
  EXPECT_EQ(a.rank, b.rank);
  EXPECT_EQ(a.path, b.path);
  EXPECT_EQ(a.attributes, b.attributes);
}

TEST(Tables, RegionLine) {
  auto one = region(1, 2, "train/epoch[3]");
  one.rank = 4;
  one.cut = true;
  one.attributes = {{"loss", "0.25"}, {"a;b", "c=d\\"}, {"cut", "true"}};
  std::string text;
  append_region_line(text, one);
  EXPECT_EQ(text, "1,2,100,101,4,train/epoch[3],cut=true;loss=0.25;a\\;b=c\\=d\\\\;\\cut=true\n");
  std::vector<Warning> warnings;
  const auto back = parse_regions(kRegionsHeader + text, "FILE", warnings);
  ASSERT_THAT(back, SizeIs(1));
  expect_same(back[0], one);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(Tables, F99_EmptyFieldsStayInTheirColumns) {
  std::string text = kRegionsHeader;
  for (int i = 0; i < 3; ++i) append_region_line(text, region(i, i + 1, "r"));
  std::size_t begin = 0;
  for (std::size_t line = 0; line < 4; ++line) {
    const auto end = text.find('\n', begin);
    EXPECT_EQ(std::count(text.begin() + static_cast<long>(begin), text.begin() + static_cast<long>(end), ','), 6);
    begin = end + 1;
  }
  std::vector<Warning> warnings;
  const auto back = parse_regions(text, "FILE", warnings);
  ASSERT_THAT(back, SizeIs(3));
  EXPECT_EQ(back[2].rank, -1);
  EXPECT_EQ(back[2].path, "r");
  EXPECT_EQ(back[2].tid, 101);
}

TEST(Tables, AnyTextComesBack) {
  std::mt19937 random(7);
  const std::string alphabet = "a,\"\n\r;=\\x'\xC3\xA9 \t#";
  const auto word = [&] {
    std::string out;
    const auto n = random() % 8;
    for (unsigned i = 0; i < n; ++i) out += alphabet[random() % alphabet.size()];
    return out;
  };
  std::vector<Region> regions;
  std::string text = kRegionsHeader;
  std::string events_text = kEventsHeader;
  std::vector<Event> events;
  for (int i = 0; i < 3000; ++i) {
    auto one = region(i, i + 5, "p" + word());
    one.cut = i % 3 == 0;
    for (int k = 0; k < 3; ++k)
      one.attributes.emplace_back(std::string(1, static_cast<char>('k' + k)) + word(), word());
    regions.push_back(one);
    append_region_line(text, one);
    events.push_back({mono_ns(i), word(), "kind", word()});
    append_event_line(events_text, events.back());
  }
  std::vector<Warning> warnings;
  const auto back = parse_regions(text, "FILE", warnings);
  ASSERT_EQ(back.size(), regions.size());
  for (std::size_t i = 0; i < back.size(); ++i) expect_same(back[i], regions[i]);
  const auto events_back = parse_events(events_text, "FILE", warnings);
  ASSERT_EQ(events_back.size(), events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events_back[i].source, events[i].source);
    EXPECT_EQ(events_back[i].detail, events[i].detail);
  }
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(Tables, RowsThatAreNoRowsAreCountedAndNamed) {
  std::vector<Warning> warnings;
  const auto regions =
      parse_regions("path,t_end_ns,t_begin_ns\r\na,20,10\r\nb,1,2\r\n,5,4\r\nc,x,1\r\n\"d\ne\",30,20\r\nf,40\r\n\"g",
                    "FILE", warnings);
  ASSERT_THAT(regions, SizeIs(2));
  EXPECT_EQ(regions[1].path, "d\ne");
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0].message, HasSubstr("FILE:3:"));
  EXPECT_THAT(warnings[0].message, HasSubstr("5 such rows"));
  warnings.clear();
  EXPECT_THAT(parse_regions("a,b\n1,2\n", "FILE", warnings), IsEmpty());
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0].message, HasSubstr("no column t_begin_ns"));
  warnings.clear();
  EXPECT_THAT(parse_events("", "FILE", warnings), IsEmpty());
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(Tables, AnAttributeSetTwiceKeepsTheLast) {
  std::vector<Warning> warnings;
  const auto regions =
      parse_regions("t_begin_ns,t_end_ns,path,attributes\n1,2,a,x=1;;y=2;x=3;flag\n", "FILE", warnings);
  ASSERT_THAT(regions, SizeIs(1));
  EXPECT_EQ(regions[0].attribute("x"), "3");
  EXPECT_EQ(regions[0].attribute("flag"), "");
  EXPECT_THAT(regions[0].attributes, SizeIs(3));
}

}  // namespace
}  // namespace ergometer
