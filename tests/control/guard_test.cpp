// The guard: what it writes and when, and that all is as it was afterwards. Without a guardian, which the tests of the
// command line have.
#include <map>
#include <stdexcept>

#include "control/control_world.hpp"

namespace ergometer::test {
namespace {

constexpr const char* kSmallCard =
    "gpu.limit_min = 150\ngpu.limit_max = 500\ngpu.limit_default = 480\ngpu.limit = 250\n";

RestoreOutcome outcome_of(const std::vector<Restored>& all, const std::string& name) {
  for (const auto& one : all)
    if (one.name == name) return one.outcome;
  ADD_FAILURE() << "nothing about " << name;
  return RestoreOutcome::failed;
}

TEST(ControlGuard, F72_RestoresTheFormerValueNotTheDefault) {
  ControlWorld world(kSmallCard);
  auto guard = world.guard({"gpu/0/power=200W"});
  ASSERT_TRUE(guard) << problem(guard);
  ASSERT_TRUE(guard->apply(world.planned({"gpu/0/power=200W"})));
  EXPECT_EQ(world.now("gpu/0/power"), "200 W");
  ASSERT_TRUE(guard->apply(world.planned({"gpu/0/power=300W"})));
  EXPECT_EQ(world.now("gpu/0/power"), "300 W");
  EXPECT_TRUE(world.journal_exists());
  EXPECT_EQ(outcome_of(guard->restore(), "gpu/0/power"), RestoreOutcome::restored);
  EXPECT_EQ(world.now("gpu/0/power"), "250 W");
  EXPECT_EQ(world.writes().back(), "gpu0 nvmlDeviceSetPowerManagementLimit 250000 -> 0");
  EXPECT_EQ(world.count_writes("480000"), 0U);
  EXPECT_FALSE(world.journal_exists());
}

TEST(ControlGuard, F73_RestoresWhenAnErrorUnwinds) {
  ControlWorld world(kSmallCard);
  const auto study = [&] {
    auto guard = world.guard({"gpu/0/power=200W", "gpu/0/clock=1200MHz"});
    ASSERT_TRUE(guard) << problem(guard);
    ASSERT_TRUE(guard->apply(world.planned({"gpu/0/power=200W", "gpu/0/clock=1200MHz"})));
    throw std::runtime_error("the report step fails");
  };
  EXPECT_THROW(study(), std::runtime_error);
  EXPECT_EQ(world.now("gpu/0/power"), "250 W");
  EXPECT_EQ(to_text(*world.control("gpu/0/clock")->effective()), "1980 MHz");
  EXPECT_FALSE(world.journal_exists());
}

TEST(ControlGuard, F76_TheEnforcedLimitLabelsTheLevel) {
  ControlWorld world("gpu.limit = 400\ngpu.limit_cap = 250\n");
  auto guard = world.guard({"gpu/0/power=300W"});
  ASSERT_TRUE(guard) << problem(guard);
  const auto first = guard->apply(world.planned({"gpu/0/power=300W"}));
  ASSERT_TRUE(first) << problem(first);
  ASSERT_EQ(first->size(), 1U);
  EXPECT_EQ(first->front().requested, ControlValue(Watts(300)));
  EXPECT_EQ(first->front().effective, ControlValue(Watts(250)));
  EXPECT_FALSE(first->front().in_effect);
  const auto second = guard->apply(world.planned({"gpu/0/power=275W"}));
  EXPECT_EQ(second->front().effective, first->front().effective);
  const auto third = guard->apply(world.planned({"gpu/0/power=225W"}));
  EXPECT_EQ(third->front().effective, ControlValue(Watts(225)));
  EXPECT_TRUE(third->front().in_effect);
}

TEST(ControlGuard, F77_ThreeReasonsBeforeAnythingStarts) {
  std::map<int, std::string> messages;
  for (const int code : {3, 4, 2}) {
    ControlWorld world(fmt::format("{}gpu.fault = nvmlDeviceSetPowerManagementLimit {}\n", kSmallCard, code));
    const auto guard = world.guard({"gpu/0/power=200W"});
    ASSERT_FALSE(guard) << code;
    messages[code] = problem(guard);
    EXPECT_EQ(world.now("gpu/0/power"), "250 W");
    EXPECT_EQ(world.count_writes("200000"), 0U) << "only what is there anyway was tried";
    EXPECT_FALSE(world.journal_exists());
    EXPECT_FALSE(ControlLock::is_held(world.guard_options().places.lock));
  }
  EXPECT_TRUE(has(messages[3], "not supported")) << messages[3];
  for (const char* remedy : {"no permission", "root", "CAP_SYS_ADMIN", "--control-command"})
    EXPECT_TRUE(has(messages[4], remedy)) << messages[4];
  EXPECT_TRUE(has(messages[2], "150 to 500 W")) << messages[2];
}

TEST(ControlGuard, F77_AClockWithoutPermissionIsSeenToo) {
  ControlWorld world("gpu.fault = nvmlDeviceSetGpuLockedClocks 4\ngpu.fault = nvmlDeviceResetGpuLockedClocks 4\n");
  const auto guard = world.guard({"gpu/0/clock=1200MHz"});
  ASSERT_FALSE(guard);
  EXPECT_EQ(guard.error().code, ErrorCode::permission_denied);
  EXPECT_FALSE(world.journal_exists()) << "nothing was locked, and what may not be locked may not be reset";
}

// Takes what it is given; says what was asked of it.
class OtherSession final : public ControlSession {
 public:
  explicit OtherSession(int& restored) : restored_(restored) {}
  ~OtherSession() override { ++restored_; }
  Result<std::vector<Applied>> apply(std::vector<ControlSetting> settings) override {
    std::vector<Applied> all;
    for (const auto& s : settings) all.push_back({s.control->describe().name, s.value, s.value, true});
    return all;
  }
  std::vector<Applied> observe() override { return {}; }
  std::vector<Restored> restore() override { return {}; }
  Result<void> keep() override { return fail(ErrorCode::unsupported, "not kept"); }

 private:
  int& restored_;
};

TEST(ControlGuard, WhatMayNotBeSetIsAskedOfSomebodyElse) {
  ControlWorld world(fmt::format("{}gpu.fault = nvmlDeviceSetPowerManagementLimit 4\n", kSmallCard));
  int asked = 0, ended = 0;
  auto options = world.guard_options();
  options.elsewhere = [&](const std::vector<ControlSetting>& settings,
                          const std::string& holder) -> Result<std::unique_ptr<ControlSession>> {
    ++asked;
    EXPECT_EQ(settings.size(), 2U) << "all together, or nothing";
    EXPECT_EQ(holder, options.holder);
    EXPECT_FALSE(ControlLock::is_held(options.places.lock)) << "the node is free for whoever is asked";
    return std::make_unique<OtherSession>(ended);
  };
  const auto settings = world.planned({"gpu/0/power=200W", "gpu/0/clock=1200MHz"});
  {
    auto guard = ControlGuard::acquire(world.host, settings, options);
    ASSERT_TRUE(guard) << problem(guard);
    EXPECT_EQ(guard->apply(settings).value().size(), 2U);
    EXPECT_FALSE(guard->keep());
    EXPECT_EQ(ended, 0);
  }
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(ended, 1) << "the end of the guard is the end of the session";
  options.elsewhere = [](const auto&, const auto&) -> Result<std::unique_ptr<ControlSession>> {
    return fail(ErrorCode::not_found, "nobody");
  };
  EXPECT_TRUE(has(problem(ControlGuard::acquire(world.host, settings, options)), "no permission"));
  options.elsewhere = [](const auto&, const auto&) -> Result<std::unique_ptr<ControlSession>> {
    return fail(ErrorCode::exists, "held by ada");
  };
  EXPECT_TRUE(has(problem(ControlGuard::acquire(world.host, settings, options)), "held by ada"));
  // Where everything is permitted nobody is asked.
  ControlWorld free(kSmallCard);
  auto own = free.guard_options();
  own.elsewhere = [&](const auto&, const auto&) -> Result<std::unique_ptr<ControlSession>> {
    ++asked;
    return fail(ErrorCode::internal, "asked");
  };
  EXPECT_TRUE(ControlGuard::acquire(free.host, free.planned({"gpu/0/power=200W"}), own));
  EXPECT_EQ(asked, 1);
}

TEST(ControlGuard, F79_ALockWithoutEffectIsSeenUnderLoad) {
  ControlWorld world("gpu.sm_clock = 1410\ngpu.clock_obeys = no\n");
  auto guard = world.guard({"gpu/0/clock=1200MHz"});
  ASSERT_TRUE(guard) << problem(guard);
  const auto applied = guard->apply(world.planned({"gpu/0/clock=1200MHz"}));
  ASSERT_TRUE(applied);
  EXPECT_TRUE(applied->front().in_effect) << "an idle clock tells nothing yet";
  const auto seen = guard->observe();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_FALSE(seen[0].in_effect);
  EXPECT_EQ(to_text(seen[0].requested), "1200 MHz");
  EXPECT_EQ(to_text(*seen[0].effective), "1410 MHz");
  const auto before = world.writes().size();
  EXPECT_EQ(outcome_of(guard->restore(), "gpu/0/clock"), RestoreOutcome::reset);
  ASSERT_EQ(world.writes().size(), before + 1);
  EXPECT_EQ(world.writes().back(), "gpu0 nvmlDeviceResetGpuLockedClocks - -> 0");
}

TEST(ControlGuard, F79_AClockThatObeysIsInEffect) {
  ControlWorld world("gpu.sm_clock = 1980\n");
  auto guard = world.guard({"gpu/0/clock=1200MHz"});
  ASSERT_TRUE(guard->apply(world.planned({"gpu/0/clock=1200MHz"})));
  EXPECT_TRUE(guard->observe().front().in_effect);
  EXPECT_EQ(world.count_writes("nvmlDeviceSetGpuLockedClocks 1200 1200"), world.count_writes("SetGpuLockedClocks"));
}

TEST(ControlGuard, F81_LimitAndEnabledComeBackAndTheTwinIsSeen) {
  ControlWorld world;
  world.zone("intel-rapl:0", "package-0", 175000000, 0);
  world.zone("intel-rapl-mmio:0", "package-0", 45000000, 1);
  const std::vector<std::string> files{"/sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw",
                                       "/sys/class/powercap/intel-rapl:0/enabled",
                                       "/sys/class/powercap/intel-rapl-mmio:0/constraint_0_power_limit_uw",
                                       "/sys/class/powercap/intel-rapl-mmio:0/enabled"};
  std::vector<std::string> before, after;
  for (const auto& file : files) before.push_back(world.read(file));
  auto guard = world.guard({"package/0/power=110W"});
  ASSERT_TRUE(guard) << problem(guard);
  const auto applied = guard->apply(world.planned({"package/0/power=110W"}));
  ASSERT_TRUE(applied) << problem(applied);
  EXPECT_EQ(world.read(files[0]), "110000000\n");
  EXPECT_EQ(world.read(files[1]), "1\n");
  EXPECT_EQ(applied->front().name, "package/0/power");
  EXPECT_EQ(applied->front().effective, ControlValue(Watts(45)));
  EXPECT_FALSE(applied->front().in_effect);
  guard->restore();
  for (const auto& file : files) after.push_back(world.read(file));
  EXPECT_EQ(after, before);
}

TEST(ControlGuard, SomebodyElsesValueIsLeftToThem) {
  ControlWorld world(std::string(kSmallCard) + "gpus = 2\n");
  auto guard = world.guard({"gpu/power=200W"});
  ASSERT_TRUE(guard->apply(world.planned({"gpu/power=200W"})));
  ASSERT_TRUE(world.control("gpu/0/power")->set(Watts(222)));
  const auto next = guard->apply(world.planned({"gpu/power=300W"}));
  ASSERT_FALSE(next);
  EXPECT_TRUE(has(problem(next), "gpu/0/power is 222 W now and not 200 W")) << problem(next);
  const auto restored = guard->restore();
  EXPECT_EQ(outcome_of(restored, "gpu/0/power"), RestoreOutcome::foreign);
  EXPECT_EQ(outcome_of(restored, "gpu/1/power"), RestoreOutcome::restored);
  EXPECT_EQ(world.now("gpu/0/power"), "222 W");
  EXPECT_EQ(world.now("gpu/1/power"), "250 W");
  EXPECT_FALSE(world.journal_exists());
}

TEST(ControlGuard, OneItemThatFailsHindersNoOther) {
  // Two writes each to prove and to set; from then on GPU 1 refuses.
  ControlWorld world(std::string(kSmallCard) +
                     "gpus = 3\ngpu1.write_fault = nvmlDeviceSetPowerManagementLimit 999 2\n");
  auto guard = world.guard({"gpu/power=200W"});
  ASSERT_TRUE(guard->apply(world.planned({"gpu/power=200W"})));
  const auto restored = guard->restore();
  EXPECT_EQ(outcome_of(restored, "gpu/0/power"), RestoreOutcome::restored);
  EXPECT_EQ(outcome_of(restored, "gpu/1/power"), RestoreOutcome::failed);
  EXPECT_EQ(outcome_of(restored, "gpu/2/power"), RestoreOutcome::restored);
  EXPECT_EQ(world.now("gpu/1/power"), "200 W");
  EXPECT_TRUE(world.journal_exists()) << "the next start must know";
  EXPECT_GT(world.count_writes("gpu1 nvmlDeviceSetPowerManagementLimit 250000 -> 999"), 3U) << "tried again";
}

TEST(ControlGuard, ARestoreThatFailsAtFirstIsTriedAgain) {
  ControlWorld world(std::string(kSmallCard) + "gpu0.write_fault = nvmlDeviceSetPowerManagementLimit 999 2 3\n");
  auto guard = world.guard({"gpu/0/power=200W"});
  ASSERT_TRUE(guard->apply(world.planned({"gpu/0/power=200W"})));
  EXPECT_EQ(outcome_of(guard->restore(), "gpu/0/power"), RestoreOutcome::restored);
  EXPECT_EQ(world.now("gpu/0/power"), "250 W");
  EXPECT_EQ(world.clock->sleeps, 3);
}

TEST(ControlGuard, FailureInTheMiddleOfALevelIsUndone) {
  ControlWorld world(std::string(kSmallCard) +
                     "gpus = 2\ngpu1.write_fault = nvmlDeviceSetPowerManagementLimit 999 1 1\n");
  {
    auto guard = world.guard({"gpu/power=200W"});
    ASSERT_TRUE(guard) << problem(guard);
    EXPECT_FALSE(guard->apply(world.planned({"gpu/power=200W"})));
    EXPECT_EQ(world.now("gpu/0/power"), "200 W");
  }
  EXPECT_EQ(world.now("gpu/0/power"), "250 W");
  EXPECT_EQ(world.now("gpu/1/power"), "250 W");
}

TEST(ControlGuard, AValueThatDoesNotStickIsAnError) {
  // Somebody sets the limit anew right after our second write.
  ControlWorld world(std::string(kSmallCard) + "gpu0.other = 2 333\n");
  auto guard = world.guard({"gpu/0/power=200W"});
  ASSERT_TRUE(guard) << problem(guard);
  const auto applied = guard->apply(world.planned({"gpu/0/power=200W"}));
  ASSERT_FALSE(applied);
  EXPECT_TRUE(has(problem(applied), "set to 200 W and reads 333 W")) << problem(applied);
}

TEST(ControlGuard, OtherDevicesAreNeverTouched) {
  ControlWorld world("gpus = 3\n");
  world.zone("intel-rapl:0", "package-0", 175000000, 1);
  world.policy(0, 1000000, 2000000, "powersave");
  const auto governor = world.read("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor");
  auto guard = world.guard({"gpu/1/power=300W", "gpu/1/clock=1200MHz"});
  ASSERT_TRUE(guard->apply(world.planned({"gpu/1/power=300W", "gpu/1/clock=1200MHz"})));
  const auto foreign = guard->apply(world.planned({"gpu/2/power=300W"}));
  ASSERT_FALSE(foreign) << "it was not acquired";
  guard->restore();
  EXPECT_EQ(world.count_writes("gpu1"), world.writes().size());
  EXPECT_EQ(world.read("/sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw"), "175000000\n");
  EXPECT_EQ(world.read("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"), governor);
}

TEST(ControlGuard, ALevelIsTheWholeOfWhatIsSet) {
  ControlWorld world(kSmallCard);
  auto guard = world.guard({"gpu/0/power=200W", "gpu/0/clock=1200MHz"});
  ASSERT_TRUE(guard->apply(world.planned({"gpu/0/power=200W", "gpu/0/clock=1200MHz"})));
  ASSERT_TRUE(guard->apply(world.planned({"gpu/0/power=300W"})));
  EXPECT_EQ(to_text(*world.control("gpu/0/clock")->effective()), "1980 MHz") << "unlocked again";
  EXPECT_EQ(guard->observe().size(), 1U);
  ASSERT_TRUE(guard->apply(world.planned({"gpu/0/clock=1200MHz"})));
  EXPECT_EQ(world.now("gpu/0/power"), "250 W");
  EXPECT_EQ(to_text(*world.control("gpu/0/clock")->effective()), "1200 MHz");
}

TEST(ControlGuard, WhatALevelNeedsStaysSet) {
  ControlWorld world;
  world.zone("intel-rapl:0", "package-0", 175000000, 0);
  auto guard = world.guard({"package/0/power=110W"});
  ASSERT_TRUE(guard) << problem(guard);
  // Planned one by one: the second finds the zone enabled and does not ask for it.
  for (const char* level : {"package/0/power=110W", "package/0/power=90W"}) {
    ASSERT_TRUE(guard->apply(world.planned({level})));
    EXPECT_EQ(world.now("package/0/enabled"), "on") << level;
  }
  guard->restore();
  EXPECT_EQ(world.now("package/0/enabled"), "off");
  EXPECT_EQ(world.now("package/0/power"), "175 W");
}

TEST(ControlGuard, TheJournalHoldsTheFirstValueOnly) {
  ControlWorld world(kSmallCard);
  auto guard = world.guard({"gpu/0/power=200W"});
  for (const char* level : {"gpu/0/power=200W", "gpu/0/power=300W", "gpu/0/power=200W"})
    ASSERT_TRUE(guard->apply(world.planned({level})));
  const auto journal = read_journal(world.guard_options().places.system_journal);
  ASSERT_TRUE(journal) << problem(journal);
  ASSERT_EQ(journal->items.size(), 1U);
  EXPECT_EQ(journal->items[0].found, ControlValue(Watts(250)));
  EXPECT_EQ(journal->items[0].set, (std::vector<ControlValue>{Watts(250), Watts(200), Watts(300)}));
  EXPECT_EQ(journal->boot_id, "boot-one");
  EXPECT_EQ(journal->owner_pid, ::getpid());
}

TEST(ControlGuard, JournalIsOnDiskBeforeTheDeviceIsTouched) {
  ControlWorld world(kSmallCard);
  // No journal can be written: then nothing may be set.
  world.write("/run/ergometer/control.journal.new/in-the-way", "");
  const auto guard = world.guard({"gpu/0/power=200W"});
  ASSERT_FALSE(guard);
  EXPECT_TRUE(world.writes().empty());
}

TEST(ControlGuard, F95_TwoStudiesOnOneNode) {
  ControlWorld world(kSmallCard);
  auto first = world.guard({"gpu/0/power=200W"});
  ASSERT_TRUE(first);
  const auto before = world.writes().size();
  const auto second = world.guard({"gpu/0/power=300W"});
  ASSERT_FALSE(second);
  EXPECT_TRUE(has(problem(second), fmt::format("controlled by PID {}", ::getpid()))) << problem(second);
  EXPECT_EQ(world.writes().size(), before);
}

// What a crash leaves behind: the journal with what was set.
void crash(ControlWorld& world, const std::string& text) {
  world.look();
  const auto settings = world.planned({text});
  Journal journal;
  journal.owner_pid = 4242;
  journal.owner = "study demo";
  journal.boot_id = "boot-one";
  for (const auto& setting : settings) {
    const auto& info = setting.control->describe();
    JournalItem item{info.name, info.backend, info.device_id, info.unit, {}, {}, false};
    if (info.readable) item.found = *setting.control->get();
    journal.items.push_back(item);
  }
  const auto file = world.guard_options().places.system_journal;
  std::filesystem::create_directories(file.parent_path());
  auto writer = JournalWriter::create(file, journal);
  ASSERT_TRUE(writer) << problem(writer);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    ASSERT_TRUE(writer->will_set(i, settings[i].value));
    ASSERT_TRUE(settings[i].control->set(settings[i].value));
  }
}

std::vector<Restored> restore_after(ControlWorld& world, const std::string& boot) {
  auto writer = JournalWriter::open(world.guard_options().places.system_journal);
  EXPECT_TRUE(writer) << problem(writer);
  return restore_journal(
      *writer, [&](const JournalItem& item) { return control_of(item, world.found.controls); }, boot, *world.clock);
}

TEST(ControlRestore, AStaleJournalIsRefusedWithTheRemedy) {
  ControlWorld world(kSmallCard);
  crash(world, "gpu/0/power=200W");
  const auto guard = world.guard({"gpu/0/power=300W"});
  ASSERT_FALSE(guard);
  for (const char* part : {"PID 4242 (study demo)", "gpu/0/power 200 W (was 250 W)", "ergometer control restore"})
    EXPECT_TRUE(has(problem(guard), part)) << problem(guard);
  EXPECT_EQ(outcome_of(restore_after(world, "boot-one"), "gpu/0/power"), RestoreOutcome::restored);
  EXPECT_EQ(world.now("gpu/0/power"), "250 W");
}

TEST(ControlRestore, AfterARestartNothingIsWrittenBlindly) {
  ControlWorld world(kSmallCard);
  crash(world, "gpu/0/power=200W");
  const auto before = world.writes().size();
  const auto restored = restore_after(world, "boot-two");
  EXPECT_EQ(outcome_of(restored, "gpu/0/power"), RestoreOutcome::restarted);
  EXPECT_TRUE(has(restored.front().text, "it was 250 W before")) << restored.front().text;
  EXPECT_EQ(world.writes().size(), before);
}

TEST(ControlRestore, AfterARestartClocksAreNotReset) {
  ControlWorld world;
  crash(world, "gpu/0/clock=1200MHz");
  const auto before = world.writes().size();
  EXPECT_EQ(outcome_of(restore_after(world, "boot-two"), "gpu/0/clock"), RestoreOutcome::restarted);
  EXPECT_EQ(world.writes().size(), before);
}

TEST(ControlRestore, ADeviceIsFoundByItsUuid) {
  ControlWorld world(std::string(kSmallCard) + "gpu.uuid = GPU-same\n");
  crash(world, "gpu/0/power=200W");
  for (auto& item : {"gpu/0/power"}) ASSERT_TRUE(world.control(item));
  JournalItem moved{"gpu/5/power", "nvml", "GPU-same", ControlUnit::watts, ControlValue(Watts(250)),
                    {Watts(200)},  false};
  EXPECT_EQ(control_of(moved, world.found.controls), world.control("gpu/0/power"));
  moved.device_id = "GPU-other";
  EXPECT_EQ(control_of(moved, world.found.controls), nullptr);
}

TEST(ControlRestore, ADeviceThatIsGoneIsNamedAndKeptInTheJournal) {
  ControlWorld world(kSmallCard);
  crash(world, "gpu/0/power=200W");
  world.found.controls.clear();
  const auto restored = restore_after(world, "boot-one");
  EXPECT_EQ(outcome_of(restored, "gpu/0/power"), RestoreOutcome::failed);
  EXPECT_TRUE(has(restored.front().text, "not there now")) << restored.front().text;
  EXPECT_TRUE(world.journal_exists());
}

TEST(ControlRestore, AFileThatCannotBeReadAnyMoreIsSetBack) {
  ControlWorld world;
  world.zone("intel-rapl:0", "package-0", 175000000, 1);
  crash(world, "package/0/power=110W");
  const auto* file = "/sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw";
  world.write(file, "");
  EXPECT_EQ(outcome_of(restore_after(world, "boot-one"), "package/0/power"), RestoreOutcome::restored);
  EXPECT_EQ(world.read(file), "175000000\n");
}

TEST(ControlRestore, BoundsThatStandInEachOthersWayComeBack) {
  ControlWorld world;
  world.policy(0, 2000000, 3000000, "powersave");
  auto guard = world.guard({"cpu/0/frequency=3400MHz"});
  ASSERT_TRUE(guard) << problem(guard);
  for (const char* level : {"cpu/0/frequency=3400MHz", "cpu/0/frequency=900MHz"})
    ASSERT_TRUE(guard->apply(world.planned({level}))) << level;
  guard->restore();
  EXPECT_EQ(world.read("/sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq"), "2000000\n");
  EXPECT_EQ(world.read("/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"), "3000000\n");
}

TEST(ControlGuard, KeptSettingsStayWithAJournal) {
  ControlWorld world(kSmallCard);
  auto guard = world.guard({"gpu/0/power=200W"});
  ASSERT_TRUE(guard->apply(world.planned({"gpu/0/power=200W"})));
  ASSERT_TRUE(guard->keep());
  EXPECT_EQ(world.now("gpu/0/power"), "200 W");
  EXPECT_FALSE(ControlLock::is_held(world.guard_options().places.lock));
  const auto journal = read_journal(world.guard_options().places.system_journal);
  EXPECT_TRUE(has(left_over_text(*journal, "boot-one"), "still set on purpose"))
      << left_over_text(*journal, "boot-one");
  EXPECT_EQ(outcome_of(restore_after(world, "boot-one"), "gpu/0/power"), RestoreOutcome::restored);
}

}  // namespace
}  // namespace ergometer::test
