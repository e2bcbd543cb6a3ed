// From what was written to settings: names, percentages, ranges, order.
#include "control/control_world.hpp"

namespace ergometer::test {
namespace {

std::vector<std::string> texts_of(const std::vector<ControlSetting>& settings) {
  std::vector<std::string> texts;
  for (const auto& setting : settings) texts.push_back(setting.control->describe().name + "=" + to_text(setting.value));
  return texts;
}

TEST(ControlValueText, ReadsBackAsTheSame) {
  for (const ControlValue& value : {ControlValue(Watts(250)), ControlValue(Watts(132.5)), ControlValue(Hertz(1.2e9)),
                                    ControlValue(Hertz(1234567)), ControlValue(std::string("performance"))})
    EXPECT_EQ(parse_value(to_text(value), unit_of(value)), value) << to_text(value);
  EXPECT_EQ(parse_value("250000mW", ControlUnit::watts), ControlValue(Watts(250)));
  EXPECT_EQ(parse_value("0.25 kW", ControlUnit::watts), ControlValue(Watts(250)));
  EXPECT_EQ(parse_value("2.4GHz", ControlUnit::hertz), ControlValue(Hertz(2.4e9)));
  EXPECT_EQ(parse_value("800000kHz", ControlUnit::hertz), ControlValue(Hertz(8e8)));
  for (const char* bad : {"200", "", "W", "12W3", "1200MHz", "nanW", "infW"})
    EXPECT_EQ(parse_value(bad, ControlUnit::watts), std::nullopt) << bad;
  for (const char* bad : {"two words", "a/b", "", "a\tb"})
    EXPECT_EQ(parse_value(bad, ControlUnit::word), std::nullopt) << bad;
}

TEST(ControlPlan, F71_SweepFromTheDevicesOwnConstraints) {
  ControlWorld world("gpu.limit_min = 100\ngpu.limit_max = 260\ngpu.limit_default = 260\ngpu.limit = 260\n");
  const auto& info = world.control("gpu/0/power")->describe();
  std::vector<double> watts;
  for (const auto& level : levels_downward(info, 25)) watts.push_back(number_of(level));
  EXPECT_EQ(watts, (std::vector<double>{260, 235, 210, 185, 160, 135, 110}));
  for (const auto& level : levels_downward(info, 25)) EXPECT_TRUE(check_value(info, level));
  EXPECT_TRUE(levels_downward(info, 0).empty());
  const auto below = world.plan({"gpu/0/power=85W"});
  ASSERT_FALSE(below);
  EXPECT_EQ(below.error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(has(problem(below), "100 to 260 W")) << problem(below);
  EXPECT_TRUE(world.writes().empty());
}

TEST(ControlPlan, PercentagesAreOfTheDefaultAndOfTheHighest) {
  ControlWorld world("gpu.limit = 500\n");
  const auto settings = world.planned({"gpu/0/power=80%", "gpu/0/clock=53%"});
  // 53 % of 1980 MHz is 1049.4; clocks go in steps of 15 from 345.
  EXPECT_EQ(texts_of(settings), (std::vector<std::string>{"gpu/0/clock=1050 MHz", "gpu/0/power=560 W"}));
  EXPECT_EQ(settings[0].asked, "53%");
  const auto low = world.plan({"gpu/0/power=20%"});
  ASSERT_FALSE(low) << "140 W is below the device's minimum and is not moved there";
  EXPECT_TRUE(has(problem(low), "140 W")) << problem(low);
  EXPECT_TRUE(has(problem(low), "200 to 700 W")) << problem(low);
  EXPECT_FALSE(world.plan({"gpu/0/power=120%"}));
  EXPECT_FALSE(world.plan({"gpu/0/clock=120%"}));
  for (const char* bad : {"gpu/0/power=%", "gpu/0/power=-5%", "gpu/0/power=x%", "gpu/0/power=0%"})
    EXPECT_FALSE(world.plan({bad})) << bad;
}

TEST(ControlPlan, ExactValuesMustExist) {
  ControlWorld world;
  EXPECT_TRUE(world.plan({"gpu/0/clock=1200MHz"}));
  const auto between = world.plan({"gpu/0/clock=1201MHz"});
  ASSERT_FALSE(between);
  EXPECT_TRUE(has(problem(between), "1200 MHz or 1215 MHz")) << problem(between);
  const auto above = world.plan({"gpu/0/clock=3GHz"});
  EXPECT_TRUE(has(problem(above), "write 1980 MHz")) << problem(above);
  const auto bare = world.plan({"gpu/0/power=200"});
  EXPECT_TRUE(has(problem(bare), "200W")) << problem(bare);
}

TEST(ControlPlan, NamesAreNeverGuessed) {
  ControlWorld world("gpus = 2\n");
  const auto bare = world.plan({"power=80%"});
  ASSERT_FALSE(bare);
  EXPECT_TRUE(has(problem(bare), "gpu/0/power=80%")) << problem(bare);
  const auto typo = world.plan({"gpu/0/powr=200W"});
  EXPECT_TRUE(has(problem(typo), "did you mean \"gpu/0/power\"")) << problem(typo);
  EXPECT_FALSE(world.plan({"gpu/7/power=200W"}));
  EXPECT_FALSE(world.plan({"gpu/0/power"}));
  EXPECT_FALSE(world.plan({"=200W"}));
  EXPECT_FALSE(world.plan({"gpu/0/power="}));
  const auto twice = world.plan({"gpu/power=300W", "gpu/1/power=200W"});
  EXPECT_TRUE(has(problem(twice), "gpu/1/power is set twice")) << problem(twice);
}

TEST(ControlPlan, DevicesByKindNumberAndUuid) {
  ControlWorld world("gpus = 3\ngpu1.uuid = GPU-aa11\n");
  EXPECT_EQ(world.planned({"gpu/power=300W"}).size(), 3U);
  EXPECT_EQ(texts_of(world.planned({"gpu/1/power=300W"})), (std::vector<std::string>{"gpu/1/power=300 W"}));
  EXPECT_EQ(texts_of(world.planned({"GPU-aa11/power=300W"})), (std::vector<std::string>{"gpu/1/power=300 W"}));
}

TEST(ControlPlan, F39_VisibleGpusAreMatchedForCertain) {
  const std::string cards =
      "gpus = 2\ngpu0.name = Slow\ngpu1.name = Fast\ngpu0.bus_id = 00000000:01:00.0\ngpu1.bus_id = 00000000:41:00.0\n";
  ::setenv("ERGOMETER_FAKE_CUDA", "00000000:41:00.0,00000000:01:00.0", 1);
  ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  ::unsetenv("CUDA_DEVICE_ORDER");
  {
    ControlWorld world(cards);
    world.cuda = FAKE_CUDA;
    world.options.environment = current_environment();
    EXPECT_EQ(texts_of(world.planned({"visible/power=300W"})), (std::vector<std::string>{"gpu/1/power=300 W"}));
  }
  {
    ControlWorld world(cards);  // and no libcuda to ask
    world.options.environment = current_environment();
    const auto unknown = world.plan({"visible/power=300W"});
    ASSERT_FALSE(unknown);
    EXPECT_TRUE(has(problem(unknown), "CUDA_DEVICE_ORDER=PCI_BUS_ID")) << problem(unknown);
  }
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
  {
    ControlWorld world(cards);
    world.options.environment = current_environment();
    EXPECT_EQ(texts_of(world.planned({"visible/power=300W"})), (std::vector<std::string>{"gpu/0/power=300 W"}));
  }
  for (const char* name : {"ERGOMETER_FAKE_CUDA", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}) ::unsetenv(name);
}

TEST(ControlPlan, AnEnabledZoneIsPartOfALimit) {
  ControlWorld world;
  world.zone("intel-rapl:0", "package-0", 175000000, 0);
  EXPECT_EQ(texts_of(world.planned({"package/0/power=110W"})),
            (std::vector<std::string>{"package/0/power=110 W", "package/0/enabled=on"}));
  world.zone("intel-rapl:0", "package-0", 175000000, 1);
  EXPECT_EQ(texts_of(world.planned({"package/0/power=110W"})), (std::vector<std::string>{"package/0/power=110 W"}));
}

TEST(ControlPlan, BoundsWidenBeforeTheyNarrow) {
  ControlWorld world;
  world.policy(0, 1000000, 2000000, "powersave");
  EXPECT_EQ(texts_of(world.planned({"cpu/0/frequency=3GHz"})),
            (std::vector<std::string>{"cpu/0/max-frequency=3000 MHz", "cpu/0/min-frequency=3000 MHz"}));
  EXPECT_EQ(texts_of(world.planned({"cpu/0/frequency=900MHz", "cpu/0/governor=performance"})),
            (std::vector<std::string>{"cpu/0/governor=performance", "cpu/0/min-frequency=900 MHz",
                                      "cpu/0/max-frequency=900 MHz"}));
  const auto word = world.plan({"cpu/governor=perfomance"});
  ASSERT_FALSE(word);
  EXPECT_TRUE(has(problem(word), "did you mean performance?")) << problem(word);
  EXPECT_FALSE(world.plan({"cpu/frequency=5GHz"}));
}

}  // namespace
}  // namespace ergometer::test
