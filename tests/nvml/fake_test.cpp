// The fake driver itself: what it plays is what the tests of other areas count on.
#include <gtest/gtest.h>

#include "fakes/nvml/shape.hpp"
#include "nvml/nvml_world.hpp"

namespace ergometer::test {
namespace {

TEST(FakeNvmlShape, ClosedForms) {
  fake_nvml::Shape shape;
  ASSERT_TRUE(shape.parse("square 500 100 0.5 0.5"));
  EXPECT_DOUBLE_EQ(shape.at(0.25), 500);
  EXPECT_DOUBLE_EQ(shape.at(0.5), 100);
  EXPECT_DOUBLE_EQ(shape.at(1.0), 500);
  EXPECT_DOUBLE_EQ(shape.integral(10), 3000);
  EXPECT_DOUBLE_EQ(shape.mean(-1, 0), 300);
  ASSERT_TRUE(shape.parse("ramp 0 100 10"));
  EXPECT_DOUBLE_EQ(shape.integral(10), 500);
  EXPECT_DOUBLE_EQ(shape.integral(12), 700);
  ASSERT_TRUE(shape.parse("steps 1 2 3"));
  EXPECT_DOUBLE_EQ(shape.integral(2.5), 4.5);
  EXPECT_DOUBLE_EQ(shape.integral(5), 12);
  EXPECT_FALSE(shape.parse("square 1 2"));
  EXPECT_FALSE(shape.parse("ramp 1 2 0"));
  EXPECT_FALSE(shape.parse("abc"));
  EXPECT_FALSE(shape.parse(""));
}

TEST(FakeNvmlScenario, UnknownLinesAreCounted) {
  NvmlWorld world;
  TempDir dir;
  dir.write("bad", "gpus = 2\nnonsense = 1\ngpu7.power = 1\ngpu.power = abc\nfault = x\n");
  EXPECT_EQ(world.fake.load((dir / "bad").string()), 4);
  EXPECT_GT(world.fake.load((dir / "missing").string()), 0);
}

}  // namespace
}  // namespace ergometer::test
