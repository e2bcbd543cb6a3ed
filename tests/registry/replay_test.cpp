#include "device/replay/replay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_dir.hpp"

namespace ergometer {
namespace {

using test::TempDir;

class ReplayTest : public testing::Test {
 protected:
  Result<void> open(std::string_view name, std::string_view csv) {
    dir_.write(name, csv);
    return discover_replay(host_, (dir_ / name).string(), found_);
  }
  TempDir dir_;
  Host host_{HostRoot{}, &Library::open, std::make_shared<SteppedClock>(mono_ns(7'000'000'000), wall_ns(0))};
  Discovery found_;
};

TEST_F(ReplayTest, RowsComeAtTheirRecordedPaceWithTheirMissingValues) {
  ASSERT_TRUE(open("gpu0-samples.csv", "t_ns,power_w\n100,50.5\n1000000100,\n2000000100,70\n"));
  auto& sensor = *found_.sensors.at(0);
  EXPECT_EQ(sensor.info().channels[0].domain, "gpu/0");
  EXPECT_EQ(sensor.info().channels[0].method, Method::samples);
  Readings first;
  ASSERT_TRUE(sensor.read(first));
  ASSERT_EQ(first.rows.size(), 1u);
  EXPECT_EQ(first.rows[0].values[0], 50.5);
  EXPECT_EQ(first.rows[0].t, mono_ns(7'000'000'000));
  StopSignal never;
  host_.clock->sleep_until(mono_ns(9'500'000'000), never);
  Readings rest;
  ASSERT_TRUE(sensor.read(rest));
  ASSERT_EQ(rest.rows.size(), 2u);
  EXPECT_EQ(rest.rows[0].values[0], std::nullopt);
  EXPECT_EQ(rest.rows[1].t, mono_ns(9'000'000'000));
  Readings none;
  ASSERT_TRUE(sensor.read(none));
  EXPECT_TRUE(none.rows.empty());
}

TEST_F(ReplayTest, BadRecordingsAreNamed) {
  EXPECT_EQ(open("a.csv", "time,power_w\n1,2\n").error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(open("b.csv", "t_ns,power_w\n1,2\n3,4x\n").error().message, testing::HasSubstr("b.csv:3"));
  EXPECT_THAT(open("c.csv", "t_ns,power_w\n").error().message, testing::HasSubstr("no row"));
  EXPECT_EQ(discover_replay(host_, "/does/not/exist.csv", found_).error().code, ErrorCode::not_found);
  ASSERT_TRUE(open("d.csv", "t_ns,power_w\n1,2\n"));
  EXPECT_EQ(open("x/d.csv", "t_ns,power_w\n1,2\n").error().code, ErrorCode::exists);
}

}  // namespace
}  // namespace ergometer
