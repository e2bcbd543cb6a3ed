#include "device/fake/fake.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

#include "device/fake/scenario.hpp"
#include "support/temp_dir.hpp"

namespace ergometer {
namespace {

using fake::Shape;
using test::TempDir;

// Integral of a shape by the midpoint rule, as an oracle for the closed forms.
double numeric_energy_j(const Shape& shape, double until_s) {
  constexpr int kSteps = 200000;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) sum += shape.power_w((i + 0.5) * until_s / kSteps);
  return sum * until_s / kSteps;
}

TEST(FakeShape, EnergyIsTheIntegralOfPower) {
  const Shape square{Shape::Kind::square, 100, 500, 0.7, 0.3, {}, {}};
  const Shape ramp{Shape::Kind::ramp, 20, 320, 4, 0.5, {}, {}};
  const Shape steps{Shape::Kind::steps, 0, 0, 1, 0.5, {0.5, 1, 3}, {10, 200, 50}};
  for (const auto* shape : {&square, &ramp, &steps})
    for (const double until_s : {0.1, 0.75, 2.0, 4.5, 9.9})
      EXPECT_NEAR(shape->energy_j(until_s), numeric_energy_j(*shape, until_s), 0.02) << until_s;
  EXPECT_DOUBLE_EQ((Shape{Shape::Kind::constant, 100, 100, 1, 0.5, {}, {}}.energy_j(3600)), 360000);
}

class FakeSensorTest : public testing::Test {
 protected:
  std::shared_ptr<Sensor> sensor_of(std::string_view toml) {
    dir_.write("scenario.toml", toml);
    Discovery found;
    const auto done = discover_fake(host_, (dir_ / "scenario.toml").string(), found);
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    return found.sensors.empty() ? nullptr : found.sensors.front();
  }
  Error error_of(std::string_view toml) {
    dir_.write("scenario.toml", toml);
    Discovery found;
    const auto done = discover_fake(host_, (dir_ / "scenario.toml").string(), found);
    EXPECT_FALSE(done);
    return done ? Error{} : done.error();
  }
  void sleep_to(double t_s) {
    StopSignal never;
    host_.clock->sleep_until(mono_ns(0) + from_seconds(t_s), never);
  }
  std::optional<double> value(Sensor& sensor) {
    Readings readings;
    EXPECT_TRUE(sensor.read(readings));
    return readings.rows.at(0).values.at(0);
  }
  TempDir dir_;
  Host host_{HostRoot{}, &Library::open, std::make_shared<SteppedClock>(mono_ns(0), wall_ns(0))};
};

TEST_F(FakeSensorTest, CounterFollowsItsShapeAndWrapsAtItsRange) {
  auto sensor = sensor_of(R"([[sensor]]
name = "rapl"
domain = "package/0"
scope = "package"
counter = true
range_j = 250
shape = { kind = "constant", value_w = 100 })");
  ASSERT_TRUE(sensor);
  EXPECT_EQ(sensor->info().channels[0].range, 250);
  sleep_to(2);
  EXPECT_NEAR(*value(*sensor), 200, 1e-9);
  sleep_to(3);
  EXPECT_NEAR(*value(*sensor), 50, 1e-9);
}

TEST_F(FakeSensorTest, FaultsHappenInTheirTime) {
  auto sensor = sensor_of(R"([[sensor]]
name = "m"
domain = "node"
shape = { kind = "ramp", low_w = 0, high_w = 100, period_s = 100 }
fault = [ { kind = "missing", from = "1s", to = "2s" }, { kind = "lost", from = "3s", to = "4s" },
          { kind = "stuck", from = "5s", to = "7s" }, { kind = "spike", from = "8s", to = "9s", value_w = 3700 },
          { kind = "block", from = "10s", to = "15s" } ])");
  ASSERT_TRUE(sensor);
  EXPECT_NEAR(*value(*sensor), 0, 1e-9);
  sleep_to(1.5);
  EXPECT_EQ(value(*sensor), std::nullopt);
  sleep_to(3.5);
  Readings readings;
  EXPECT_EQ(sensor->read(readings).error().code, ErrorCode::lost);
  sleep_to(4.5);
  EXPECT_NEAR(*value(*sensor), 4.5, 1e-9);
  sleep_to(6);
  EXPECT_NEAR(*value(*sensor), 4.5, 1e-9);
  sleep_to(8.5);
  EXPECT_NEAR(*value(*sensor), 3700, 1e-9);
  sleep_to(12);
  EXPECT_NEAR(*value(*sensor), 15, 1e-9);
  EXPECT_EQ(host_.clock->now(), mono_ns(15'000'000'000)) << "a blocked read returns when its fault ends";
}

TEST_F(FakeSensorTest, BadScenariosAreNamed) {
  EXPECT_THAT(error_of("[[sensor]]\nname=\"a\"\ndomian=\"node\"").message, testing::HasSubstr("domian"));
  EXPECT_THAT(error_of("[[sensor]]\nname=\"a\"\ndomian=\"node\"").hint, testing::HasSubstr("domain"));
  EXPECT_THAT(error_of("[[sensor]]\nname=\"a\"\ndomain=\"node\"").message, testing::HasSubstr("shape"));
  EXPECT_THAT(error_of("x = [").message, testing::HasSubstr("scenario.toml:1"));
  EXPECT_THAT(error_of("").message, testing::HasSubstr("[[sensor]]"));
  EXPECT_THAT(error_of("[[sensor]]\nname=\"a\"\ndomain=\"node\"\ninterval=\"100\"\n"
                       "shape={kind=\"constant\",value_w=1}").message,
              testing::HasSubstr("not a duration"));
  EXPECT_THAT(error_of("[[sensor]]\nname=\"a\"\ndomain=\"node\"\nshape={kind=\"sqare\"}").message,
              testing::HasSubstr("sqare"));
}

}  // namespace
}  // namespace ergometer
