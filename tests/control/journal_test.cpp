// The journal's bytes, and the lock.
#include <fcntl.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <map>

#include "control/control_world.hpp"

namespace ergometer::test {
namespace {

Journal example() {
  Journal journal;
  journal.owner_pid = 4242;
  journal.owner = "study demo";
  journal.since_unix_s = 1796000000;
  journal.boot_id = "boot-one";
  journal.nvml_path = "libnvidia-ml.so.1";
  journal.items = {
      {"gpu/0/power", "nvml", "GPU-aa", ControlUnit::watts, ControlValue(Watts(250)), {}, false},
      {"gpu/0/clock", "nvml", "GPU-aa", ControlUnit::hertz, std::nullopt, {}, false},
      {"cpu/0/governor", "cpufreq", "policy0", ControlUnit::word, ControlValue(std::string("powersave")), {}, false}};
  return journal;
}

TEST(ControlJournal, EveryLineReadsBack) {
  TempDir dir;
  const auto file = dir / "journal";
  {
    auto writer = JournalWriter::create(file, example());
    ASSERT_TRUE(writer) << problem(writer);
    EXPECT_TRUE(writer->will_set(0, Watts(200)));
    EXPECT_TRUE(writer->will_set(1, Hertz(1.2e9)));
    EXPECT_TRUE(writer->will_set(0, Watts(132.5)));
    EXPECT_TRUE(writer->settled(2));
    EXPECT_TRUE(writer->keep());
  }
  const auto journal = read_journal(file);
  ASSERT_TRUE(journal) << problem(journal);
  EXPECT_EQ(journal->owner_pid, 4242);
  EXPECT_EQ(journal->owner, "study demo");
  EXPECT_EQ(journal->boot_id, "boot-one");
  ASSERT_EQ(journal->items.size(), 3U);
  EXPECT_EQ(journal->items[0].found, ControlValue(Watts(250)));
  EXPECT_EQ(journal->items[0].set, (std::vector<ControlValue>{Watts(200), Watts(132.5)}));
  EXPECT_EQ(journal->items[1].found, std::nullopt);
  EXPECT_TRUE(journal->items[2].settled);
  EXPECT_TRUE(journal->kept);
  EXPECT_TRUE(journal->changed());
}

TEST(ControlJournal, ACutLineIsAStepThatWasNeverBegun) {
  TempDir dir;
  const auto file = dir / "journal";
  {
    auto writer = JournalWriter::create(file, example());
    ASSERT_TRUE(writer->will_set(0, Watts(200)));
  }
  const auto whole = dir.read("journal");
  for (std::size_t cut = whole.rfind("set"); cut < whole.size(); ++cut) {
    dir.write("journal", whole.substr(0, cut));
    const auto journal = read_journal(file);
    ASSERT_TRUE(journal) << cut << problem(journal);
    EXPECT_FALSE(journal->changed()) << cut;
    auto writer = JournalWriter::open(file);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->will_set(1, Hertz(1e9)));
    const auto again = read_journal(file);
    ASSERT_TRUE(again) << cut << problem(again) << dir.read("journal");
    EXPECT_EQ(again->items[1].set.size(), 1U);
  }
}

TEST(ControlJournal, DamageIsNamedAndNothingIsGuessed) {
  TempDir dir;
  for (const char* bad : {"", "nonsense\n", "ergometer.control/1\nset\t0\t200 W\n", "ergometer.control/1\nowner\tx\ty\n",
                          "ergometer.control/1\nitem\ta\tb\tc\tW\t250\n", "ergometer.control/1\nitem\ta\tb\tc\tJ\t\n",
                          "ergometer.control/1\n\n", "ergometer.control/2\n"}) {
    const auto journal = parse_journal(bad);
    ASSERT_FALSE(journal) << bad;
    EXPECT_EQ(journal.error().code, ErrorCode::corrupt);
  }
}

TEST(ControlJournal, NeverOverAnotherJournal) {
  TempDir dir;
  ASSERT_TRUE(JournalWriter::create(dir / "journal", example()));
  const auto before = dir.read("journal");
  const auto second = JournalWriter::create(dir / "journal", Journal{});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::exists);
  EXPECT_EQ(dir.read("journal"), before);
}

TEST(ControlJournal, NotFromAStranger) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make another user's file";
  TempDir dir;
  ASSERT_TRUE(JournalWriter::create(dir / "journal", example()));
  ASSERT_EQ(::chown((dir / "journal").c_str(), 12345, 12345), 0);
  const auto journal = read_journal(dir / "journal");
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().code, ErrorCode::permission_denied);
  std::filesystem::create_symlink(dir / "journal", dir / "link");
  EXPECT_FALSE(read_journal(dir / "link"));
}

TEST(ControlLockFile, F95_SecondHolderIsToldWhoHasIt) {
  TempDir dir;
  const auto file = dir / "run/lock/control.lock";
  EXPECT_FALSE(ControlLock::is_held(file));
  auto first = ControlLock::take(file, "study one");
  ASSERT_TRUE(first) << problem(first);
  EXPECT_TRUE(ControlLock::is_held(file));
  const auto second = ControlLock::take(file, "study two");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::exists);
  EXPECT_TRUE(has(problem(second), fmt::format("controlled by PID {} (study one)", ::getpid()))) << problem(second);
  { const auto gone = std::move(*first); }
  EXPECT_TRUE(ControlLock::take(file, "study two"));
}

TEST(ControlLockFile, WaitsForTheGuardianOfADeadHolder) {
  TempDir dir;
  const auto file = dir / "control.lock";
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  // The holder dies, and what it left behind keeps the lock for a while.
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto lock = ControlLock::take(file, "the dead");
    if (::fork() == 0) {
      const bool told = ::write(pipe[1], "x", 1) == 1;
      ::usleep(300000);
      ::_exit(told ? 0 : 1);
    }
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(holder, nullptr, 0), holder);
  char byte = 0;
  ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
  EXPECT_FALSE(ControlLock::take(file, "impatient", 0));
  EXPECT_TRUE(ControlLock::take(file, "patient"));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(ControlPlacesOf, RunFirstThenTheUsersState) {
  const Environment home{{"HOME", "/home/anna"}}, xdg{{"HOME", "/home/anna"}, {"XDG_STATE_HOME", "/state"}};
  EXPECT_EQ(control_places(HostRoot(), home).system_journal, "/run/ergometer/control.journal");
  EXPECT_EQ(control_places(HostRoot(), home).user_journal.parent_path(), "/home/anna/.local/state/ergometer");
  EXPECT_EQ(control_places(HostRoot(), xdg).user_journal.parent_path(), "/state/ergometer");
  EXPECT_TRUE(control_places(HostRoot(), {}).user_journal.empty());
  EXPECT_EQ(control_places(HostRoot("/fake"), {}).lock, "/fake/run/lock/ergometer-control.lock");
}

}  // namespace
}  // namespace ergometer::test
