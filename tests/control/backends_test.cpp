// Every backend's knobs on fake trees: what is found, set, refused, and missing.
#include "control/control_world.hpp"

namespace ergometer::test {
namespace {

std::vector<std::string> names(const ControlDiscovery& found) {
  std::vector<std::string> out;
  for (const auto& control : found.controls) out.push_back(control->describe().name);
  return out;
}
bool has_name(const ControlDiscovery& found, const std::string& name) {
  const auto all = names(found);
  return std::ranges::find(all, name) != all.end();
}

TEST(NvmlControls, LimitsClocksAndPersistence) {
  ControlWorld world("gpu.persistence = off\n");
  world.look();
  for (const char* name : {"gpu/0/power", "gpu/0/clock", "gpu/0/memory-clock", "gpu/0/persistence"})
    EXPECT_TRUE(has_name(world.found, name)) << name;
  const auto& clock = world.control("gpu/0/clock")->describe();
  EXPECT_EQ(clock.choices.size(), 110U);
  EXPECT_EQ(range_text(clock), "345 to 1980 MHz, 110 values");
  EXPECT_FALSE(clock.readable);
  EXPECT_EQ(range_text(world.control("gpu/0/power")->describe()), "200 to 700 W");
  ASSERT_TRUE(world.control("gpu/0/persistence")->set(std::string("on")));
  EXPECT_EQ(world.now("gpu/0/persistence"), "on");
  ASSERT_TRUE(world.control("gpu/0/memory-clock")->set(Hertz(2.201e9)));
  EXPECT_EQ(to_text(*world.control("gpu/0/memory-clock")->effective()), "2201 MHz");
  ASSERT_TRUE(world.control("gpu/0/memory-clock")->reset());
  EXPECT_EQ(to_text(*world.control("gpu/0/memory-clock")->effective()), "3201 MHz");
}

TEST(NvmlControls, LookingWritesNothing) {
  ControlWorld world("gpus = 4\n");
  world.look();
  for (const auto& control : world.found.controls) {
    (void)control->get();
    (void)control->effective();
  }
  EXPECT_TRUE(world.writes().empty());
}

TEST(NvmlControls, AnOldDriverLacksLockedClocks) {
  ControlWorld world("", FAKE_NVML_OLD);
  world.look();
  EXPECT_FALSE(has_name(world.found, "gpu/0/clock"));
  EXPECT_TRUE(has_name(world.found, "gpu/0/power"));
  const auto lacks =
      std::ranges::count_if(world.found.absences, [](const auto& a) { return has(a.reason, "lacks locked clocks"); });
  EXPECT_EQ(lacks, 2);
}

TEST(NvmlControls, WhatAGpuCannotIsListedWithItsReason) {
  ControlWorld world("gpu.unsupported = nvmlDeviceGetPowerManagementLimit nvmlDeviceGetSupportedMemoryClocks\n");
  world.look();
  EXPECT_EQ(names(world.found), (std::vector<std::string>{"gpu/0/persistence"}));
  EXPECT_TRUE(std::ranges::any_of(world.found.absences, [](const auto& a) { return has(a.reason, "not supported"); }));
}

TEST(NvmlControls, ALostGpuHidesNoOther) {
  ControlWorld world("gpus = 2\ngpu0.fault = * 15\n");
  world.look();
  EXPECT_FALSE(has_name(world.found, "gpu/0/power"));
  EXPECT_TRUE(has_name(world.found, "gpu/1/power"));
}

TEST(RaplControls, ZonesBySocketNotByNumber) {
  ControlWorld world;
  world.zone("intel-rapl:0", "package-1", 150000000, 1, 205000000);
  world.zone("intel-rapl:1", "package-0", 140000000, 1, 205000000);
  world.zone("intel-rapl:1:0", "dram", 40000000, 0);
  EXPECT_EQ(world.now("package/0/power"), "140 W");
  EXPECT_EQ(world.now("package/1/power"), "150 W");
  EXPECT_EQ(world.now("dram/0/enabled"), "off");
  const auto& info = world.control("package/0/power")->describe();
  EXPECT_EQ(info.highest, ControlValue(Watts(205)));
  EXPECT_EQ(info.default_value, ControlValue(Watts(205)));
  EXPECT_FALSE(world.plan({"package/0/power=206W"}));
  EXPECT_FALSE(world.plan({"package/0/power=0W"}));
}

TEST(RaplControls, ReadOnlyOrDamagedFilesAreErrorsWithRemedies) {
  ControlWorld world;
  world.zone("intel-rapl:0", "package-0", 140000000, 1);
  auto power = world.control("package/0/power");
  const auto file = world / "/sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw";
  if (::geteuid() != 0) {
    std::filesystem::permissions(file, std::filesystem::perms::owner_read);
    const auto denied = power->set(Watts(100));
    EXPECT_EQ(denied.error().code, ErrorCode::permission_denied);
    EXPECT_TRUE(has(problem(denied), "--control-command"));
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  world.write("/sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", "much\n");
  EXPECT_EQ(power->get().error().code, ErrorCode::corrupt);
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_FALSE(power->set(Watts(100)));
  std::filesystem::remove(file);
  EXPECT_EQ(power->set(Watts(100)).error().code, ErrorCode::not_found);
}

TEST(CpufreqControls, PoliciesInTheirOrder) {
  ControlWorld world;
  world.policy(10, 800000, 3500000, "schedutil");
  world.policy(2, 800000, 3500000, "powersave");
  world.look();
  std::vector<std::string> governors;
  for (const auto& name : names(world.found))
    if (name.ends_with("governor")) governors.push_back(name);
  EXPECT_EQ(governors, (std::vector<std::string>{"cpu/2/governor", "cpu/10/governor"}));
  EXPECT_EQ(world.now("cpu/10/governor"), "schedutil");
  EXPECT_EQ(world.planned({"cpu/governor=performance"}).size(), 2U);
  ASSERT_TRUE(world.control("cpu/2/max-frequency")->set(Hertz(2.5e9)));
  EXPECT_EQ(world.read("/sys/devices/system/cpu/cpufreq/policy2/scaling_max_freq"), "2500000\n");
  EXPECT_EQ(world.now("cpu/2/max-frequency"), "2500 MHz");
}

TEST(CpufreqControls, AListOfFrequenciesIsTheRange) {
  ControlWorld world;
  world.policy(0, 800000, 3500000, "powersave");
  world.write("/sys/devices/system/cpu/cpufreq/policy0/scaling_available_frequencies", "3500000 2000000 800000 \n");
  EXPECT_TRUE(world.plan({"cpu/0/max-frequency=2GHz"}));
  const auto between = world.plan({"cpu/0/max-frequency=2.1GHz"});
  EXPECT_TRUE(has(problem(between), "2000 MHz or 3500 MHz")) << problem(between);
}

TEST(AmdgpuControls, PowerCapOfACard) {
  ControlWorld world;
  const std::string device = "/sys/class/drm/card1/device/", hwmon = device + "hwmon/hwmon3/";
  world.write(device + "uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n");
  world.write(hwmon + "name", "amdgpu\n");
  world.write(hwmon + "power1_cap", "250000000\n");
  world.write(hwmon + "power1_cap_min", "100000000\n");
  world.write(hwmon + "power1_cap_max", "300000000\n");
  world.write(hwmon + "power1_cap_default", "272000000\n");
  world.write("/sys/class/drm/card1-DP-1/status", "connected\n");
  const auto& info = world.control("gpu-card/1/power")->describe();
  EXPECT_EQ(info.device_id, "0000:03:00.0");
  EXPECT_EQ(info.default_value, ControlValue(Watts(272)));
  EXPECT_EQ(range_text(info), "100 to 300 W");
  EXPECT_FALSE(world.plan({"gpu-card/1/power=90W"}));
  auto guard = world.guard({"gpu-card/1/power=200W"});
  ASSERT_TRUE(guard) << problem(guard);
  ASSERT_TRUE(guard->apply(world.planned({"gpu-card/1/power=200W"})));
  EXPECT_EQ(world.read(hwmon + "power1_cap"), "200000000\n");
  guard->restore();
  EXPECT_EQ(world.read(hwmon + "power1_cap"), "250000000\n");
}

TEST(Controls, NothingThereIsSaidByEachBackend) {
  TempDir empty;
  Host host{HostRoot(empty.path()), &Library::open, std::make_shared<JumpClock>()};
  DiscoverOptions options;
  options.nvml_path = "/no/such/libnvidia-ml.so.1";
  const auto found = discover_controls(host, options);
  EXPECT_TRUE(found.controls.empty());
  EXPECT_EQ(found.absences.size(), 4U);
  EXPECT_EQ(discover_controls(host, options, {"rapl"}).absences.size(), 1U) << "no driver is loaded for nothing";
}

}  // namespace
}  // namespace ergometer::test
