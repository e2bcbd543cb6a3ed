// What a site lets its users set.
#include "daemon/control_rules.hpp"

#include <gtest/gtest.h>

#include "daemon/config.hpp"

namespace ergometer::daemon {
namespace {

// A control that is nothing but its description.
class PaperControl final : public Control {
 public:
  explicit PaperControl(ControlInfo info) : Control(std::move(info)) {}
  Result<ControlValue> get() override { return fail(ErrorCode::unsupported, "paper"); }
  Result<void> set(const ControlValue&) override { return fail(ErrorCode::unsupported, "paper"); }
};

ControlSetting setting(const char* name, ControlValue value, ControlInfo info = {}) {
  info.name = name;
  return {std::make_shared<PaperControl>(std::move(info)), std::move(value), {}};
}

std::vector<AllowedControl> rules(std::initializer_list<const char*> texts) {
  std::vector<AllowedControl> all;
  for (const auto* text : texts) {
    auto rule = parse_allowed(text);
    EXPECT_TRUE(rule) << text;
    if (rule) all.push_back(std::move(*rule));
  }
  return all;
}

TEST(ControlRules, APatternNamesControlsAndARangeBoundsThem) {
  const auto site = rules({"gpu/*/power=200W..0.4kW", "cpu/*/frequency=1GHz..2GHz", "cpu/0/governor"});
  EXPECT_TRUE(check_allowed({setting("gpu/11/power", Watts(200))}, site));
  EXPECT_TRUE(check_allowed({setting("gpu/0/power", Watts(400))}, site));
  EXPECT_FALSE(check_allowed({setting("gpu/0/power", Watts(401))}, site));
  EXPECT_FALSE(check_allowed({setting("gpu/0/power", Watts(199))}, site));
  EXPECT_FALSE(check_allowed({setting("gpu/0/clock", Hertz(1e9))}, site));
  EXPECT_FALSE(check_allowed({setting("gpu/0/power", Hertz(300))}, site)) << "another unit";
  EXPECT_TRUE(check_allowed({setting("cpu/3/frequency", Hertz(2e9))}, site));
  EXPECT_TRUE(check_allowed({setting("cpu/0/governor", std::string("performance"))}, site));
  EXPECT_FALSE(check_allowed({setting("cpu/1/governor", std::string("performance"))}, site));
  EXPECT_FALSE(check_allowed({setting("gpu/0/power", Watts(300)), setting("gpu/0/power", Watts(500))}, site))
      << "each of them counts";
}

TEST(ControlRules, ARefusalSaysWhatIsAllowed) {
  const auto refused = check_allowed({setting("gpu/0/power", Watts(500))}, rules({"gpu/*/power=200W..400W", "cpu/*"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::permission_denied);
  EXPECT_NE(refused.error().message.find("gpu/0/power = 500 W"), std::string::npos);
  EXPECT_NE(refused.error().hint.find("gpu/*/power from 200 W to 400 W"), std::string::npos);
  EXPECT_EQ(refused.error().hint.find("cpu/*"), std::string::npos) << "only what fits the control";
  EXPECT_FALSE(check_allowed({setting("gpu/0/power", Watts(300))}, {})) << "nothing is allowed";
}

TEST(ControlRules, WhatAnAllowedControlNeedsIsAllowedWithIt) {
  ControlInfo power;
  power.needs = {{"package/0/enabled", std::string("on")}};
  const auto limit = setting("package/0/power", Watts(100), power);
  const auto on = setting("package/0/enabled", std::string("on")),
             off = setting("package/0/enabled", std::string("off"));
  EXPECT_TRUE(check_allowed({on, limit}, rules({"package/*/power"})));
  EXPECT_FALSE(check_allowed({off, limit}, rules({"package/*/power"})));
  EXPECT_FALSE(check_allowed({on}, rules({"package/*/power"})));
  EXPECT_FALSE(check_allowed({on, limit}, rules({"package/*/power=10W..50W"}))) << "what needs it is not allowed";
}

TEST(ControlRules, TextsThatMeanNothingAreRefused) {
  for (const char* text : {"", "=1W..2W", "gpu/*/power=", "gpu/*/power=100W", "gpu/*/power=100..200",
                           "gpu/*/power=2W..1W", "gpu/*/power=1W..2GHz", "gpu/*/power=W..W"})
    EXPECT_FALSE(parse_allowed(text)) << text;
}

TEST(ControlRules, TheConfigurationHasThem) {
  const auto config = parse_config(
      "control-groups = [\"tuners\"]\ncontrol-users = [\"anna\"]\ncontrol-jobs = true\njobs = true\n"
      "controls = [\"gpu/*/power=200W..400W\"]\njob-interval = \"30s\"\njob-records = \"/data/jobs\"\njob-keep = "
      "\"7d\"\n",
      "e.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->control_groups, std::vector<std::string>{"tuners"});
  EXPECT_EQ(config->control_users, std::vector<std::string>{"anna"});
  EXPECT_TRUE(config->control_jobs && config->jobs);
  EXPECT_EQ(config->controls, std::vector<std::string>{"gpu/*/power=200W..400W"});
  EXPECT_EQ(config->job_interval, Nanos(std::chrono::seconds(30)));
  EXPECT_EQ(config->job_records, "/data/jobs");
  EXPECT_EQ(config->job_keep, Nanos(std::chrono::hours(7 * 24)));
  for (const char* text :
       {"controls = [\"gpu=1\"]", "job-keep = \"90\"", "job-keep = \"0d\"", "job-interval = \"10ms\"",
        "job-records = \"relative\"", "jobs = \"yes\"", "control-jobs = true"})
    EXPECT_FALSE(parse_config(text, "e.toml")) << text;
}

}  // namespace
}  // namespace ergometer::daemon
