// Seats: elections among many processes, what is left behind by the dead, storage that cannot be used.
#include "cluster/seat.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "support/temp_dir.hpp"

namespace ergometer::test {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;

SeatRequest request_of(int rank, const std::string& launch = "slurm-1.0") {
  SeatRequest request;
  request.launch = launch;
  request.machine = {"boot", "4026531834", ""};
  request.self = this_member(rank, "n1", {});
  return request;
}

fs::path run_folder_of(const TempDir& dir, const std::string& launch, int number) {
  return dir.path() / ("ergometer-" + std::to_string(::geteuid())) / (launch + "." + request_of(0).machine.id()) /
         std::to_string(number);
}

// A process that takes a seat and then lives until it is told.
class OtherRank {
 public:
  OtherRank(const TempDir& dir, int rank) {
    int pipe_ends[2];
    EXPECT_EQ(::pipe(pipe_ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const auto seat = take_seat({dir.path()}, request_of(rank));
      const char what = static_cast<char>('0' + seat.index());
      if (::write(pipe_ends[1], &what, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(pipe_ends[1]);
    char what = '?';
    EXPECT_EQ(::read(pipe_ends[0], &what, 1), 1);
    ::close(pipe_ends[0]);
    leads_ = what == '0';
  }
  ~OtherRank() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  [[nodiscard]] bool leads() const { return leads_; }

 private:
  pid_t pid_ = 0;
  bool leads_ = false;
};

TEST(Seats, OfSixtyFourStartsAtOnceOneLeads) {
  constexpr int kRanks = 64;
  TempDir dir;
  struct Shared {
    std::atomic<int> go, leaders, followers, seen;
  };
  auto* shared =
      static_cast<Shared*>(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<pid_t> pids;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      while (shared->go == 0) std::this_thread::sleep_for(1ms);
      auto seat = take_seat({dir.path()}, request_of(rank));
      if (auto* leader = std::get_if<Leader>(&seat)) {
        ++shared->leaders;
        while (shared->leaders + shared->followers < kRanks) std::this_thread::sleep_for(1ms);
        shared->seen = static_cast<int>(leader->members().size());
        if (!leader->open({"/run", "/run/nodes/n1"})) ::_exit(2);
        while (!leader->close()) std::this_thread::sleep_for(1ms);
      } else if (auto* follower = std::get_if<Follower>(&seat)) {
        ++shared->followers;
        const auto opening = follower->wait([] { return false; });
        const auto* opened = std::get_if<Follower::Opened>(&opening);
        if (!opened || opened->place.node != "/run/nodes/n1") ::_exit(3);
      }
      ::_exit(0);
    }
    pids.push_back(pid);
  }
  shared->go = 1;
  for (const pid_t pid : pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(shared->leaders, 1);
  EXPECT_EQ(shared->followers, kRanks - 1);
  EXPECT_EQ(shared->seen, kRanks);
  ::munmap(shared, sizeof(Shared));
}

TEST(Seats, TwoLaunchesOnOneNodeAreTwoRuns) {
  TempDir dir;
  const auto one = take_seat({dir.path()}, request_of(0, "slurm-1.0"));
  const auto other = take_seat({dir.path()}, request_of(0, "slurm-1.1"));
  EXPECT_TRUE(std::holds_alternative<Leader>(one));
  EXPECT_TRUE(std::holds_alternative<Leader>(other));
}

TEST(Seats, TwoMachinesThatShareTheFolderAreTwo) {
  TempDir dir;
  const auto one = take_seat({dir.path()}, request_of(0));
  for (const Machine& machine : {Machine{"boot2", "4026531834", ""}, Machine{"boot", "4026532000", ""},
                                 Machine{"boot", "4026531834", "/host"}}) {
    auto request = request_of(1);
    request.machine = machine;
    EXPECT_TRUE(std::holds_alternative<Leader>(take_seat({dir.path()}, request))) << machine.id();
  }
}

TEST(Seats, TheLeaderKnowsWhoLivesAndWaitsForThem) {
  TempDir dir;
  auto seat = take_seat({dir.path()}, request_of(0));
  auto& leader = std::get<Leader>(seat);
  {
    auto other = take_seat({dir.path()}, request_of(1));
    auto& follower = std::get<Follower>(other);
    EXPECT_FALSE(leader.close());
    ASSERT_TRUE(follower.registration()->update([](Member& m) {
      m.exit_code = 7;
      m.end = mono_ns(5);
    }));
  }
  const auto members = leader.members();
  ASSERT_EQ(members.size(), 2U);
  EXPECT_TRUE(members[0].own);
  EXPECT_EQ(members[1].rank, 1);
  EXPECT_FALSE(members[1].lives);
  EXPECT_EQ(members[1].exit_code, 7);
  EXPECT_TRUE(leader.close());
  // Nobody comes in any more: the next one begins a run of its own.
  EXPECT_TRUE(std::holds_alternative<Leader>(take_seat({dir.path()}, request_of(2))));
}

TEST(Seats, AKilledFollowerLivesNoMore) {
  TempDir dir;
  auto seat = take_seat({dir.path()}, request_of(0));
  auto& leader = std::get<Leader>(seat);
  OtherRank other(dir, 1);
  EXPECT_FALSE(other.leads());
  EXPECT_FALSE(leader.close());
  other.kill();
  EXPECT_TRUE(leader.close());
  EXPECT_FALSE(leader.members()[1].exit_code) << "never told";
}

TEST(Seats, AKilledLeaderIsNoticedAndTakesNobodyIn) {
  TempDir dir;
  OtherRank first(dir, 0);
  EXPECT_TRUE(first.leads());
  auto seat = take_seat({dir.path()}, request_of(1));
  auto& follower = std::get<Follower>(seat);
  EXPECT_TRUE(follower.leader_lives());
  std::thread later([&] {
    std::this_thread::sleep_for(50ms);
    first.kill();
  });
  EXPECT_TRUE(std::holds_alternative<Follower::Lost>(follower.wait([] { return false; })));
  later.join();
  EXPECT_FALSE(follower.leader_lives());
  EXPECT_TRUE(std::holds_alternative<Leader>(take_seat({dir.path()}, request_of(2))));
}

TEST(Seats, AWaitCanBeCancelled) {
  TempDir dir;
  const auto leader = take_seat({dir.path()}, request_of(0));
  auto seat = take_seat({dir.path()}, request_of(1));
  EXPECT_TRUE(std::holds_alternative<Follower::Cancelled>(std::get<Follower>(seat).wait([] { return true; })));
}

TEST(Seats, ALeaderThatCannotBeginTellsWhy) {
  TempDir dir;
  auto first = take_seat({dir.path()}, request_of(0));
  auto seat = take_seat({dir.path()}, request_of(1));
  std::get<Leader>(first).give_up({ErrorCode::not_found, "there is no gpu/0", "leave out --require"});
  const auto opening = std::get<Follower>(seat).wait([] { return false; });
  ASSERT_TRUE(std::holds_alternative<Follower::Refused>(opening));
  EXPECT_EQ(std::get<Follower::Refused>(opening).why.message, "there is no gpu/0");
  EXPECT_EQ(std::get<Follower::Refused>(opening).why.hint, "leave out --require");
}

TEST(Seats, ARankThatComesAgainWantsTheNextRun) {
  TempDir dir;
  auto first = take_seat({dir.path()}, request_of(0));
  ASSERT_TRUE(std::holds_alternative<Leader>(first));
  { const auto once = take_seat({dir.path()}, request_of(1)); }
  EXPECT_TRUE(std::holds_alternative<Leader>(take_seat({dir.path()}, request_of(1))));
  EXPECT_TRUE(fs::exists(run_folder_of(dir, "slurm-1.0", 2)));
}

TEST(Seats, InAStepThatIsMeasuredARankMayComeAgain) {
  TempDir dir;
  EXPECT_FALSE(follow_step({dir.path()}, request_of(1))) << "nobody measures a step yet";
  EXPECT_TRUE(fs::is_empty(dir.path())) << "and looking leaves nothing behind";
  auto request = request_of(-1);
  request.self.rank.reset();
  request.step = true;
  auto step = take_seat({dir.path()}, request);
  ASSERT_TRUE(std::holds_alternative<Leader>(step));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(follow_step({dir.path()}, request_of(1)));
  EXPECT_TRUE(std::get<Leader>(step).close());
  EXPECT_FALSE(follow_step({dir.path()}, request_of(1)));
}

TEST(Seats, ARunIsNoStep) {
  TempDir dir;
  const auto leader = take_seat({dir.path()}, request_of(0));
  EXPECT_FALSE(follow_step({dir.path()}, request_of(1)));
}

TEST(Seats, AFolderThatOthersCanWriteIsNotTrusted) {
  TempDir dir;
  const auto top = dir.path() / ("ergometer-" + std::to_string(::geteuid()));
  fs::create_directory(top);
  ASSERT_EQ(::chmod(top.c_str(), 0777), 0);
  const auto seat = take_seat({dir.path()}, request_of(0));
  ASSERT_TRUE(std::holds_alternative<Alone>(seat));
  EXPECT_THAT(std::get<Alone>(seat).why.message, ::testing::HasSubstr(top.string()));
  fs::remove(top);
  fs::create_directory(dir.path() / "elsewhere");
  fs::create_directory_symlink(dir.path() / "elsewhere", top);
  EXPECT_TRUE(std::holds_alternative<Alone>(take_seat({dir.path()}, request_of(0)))) << "a link";
}

TEST(Seats, WithoutOneStorageTheNextIsTaken) {
  TempDir dir;
  const std::vector<fs::path> folders{dir.path() / "absent", dir.path()};
  const auto leader = take_seat(folders, request_of(0));
  EXPECT_TRUE(std::holds_alternative<Leader>(leader));
  EXPECT_TRUE(std::holds_alternative<Follower>(take_seat(folders, request_of(1))));
  EXPECT_TRUE(std::holds_alternative<Alone>(take_seat({dir.path() / "absent"}, request_of(2))));
}

// A small file system of its own, read-only or full; needs root.
class SmallDisk {
 public:
  explicit SmallDisk(const fs::path& at) : at_(at) {
    fs::create_directory(at);
    mounted_ = ::mount("none", at.c_str(), "tmpfs", 0, "size=64k,mode=1777") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  [[nodiscard]] bool mounted() const { return mounted_; }
  void make_read_only() const { ASSERT_EQ(::mount("none", at_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr), 0); }
  void fill() const {
    const int fd = ::open((at_ / "filler").c_str(), O_WRONLY | O_CREAT, 0600);
    const std::string block(4096, 'x');
    while (::write(fd, block.data(), block.size()) > 0) {
    }
    ::close(fd);
  }

 private:
  fs::path at_;
  bool mounted_ = false;
};

TEST(Seats, ReadOnlyStorageMeansAloneWithTheReason) {
  TempDir dir;
  const SmallDisk disk(dir.path() / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "mounting needs root";
  disk.make_read_only();
  const auto seat = take_seat({dir.path() / "disk"}, request_of(0));
  ASSERT_TRUE(std::holds_alternative<Alone>(seat));
  EXPECT_THAT(std::get<Alone>(seat).why.message, ::testing::HasSubstr("Read-only"));
}

TEST(Seats, FullStorageMeansTheNextOne) {
  TempDir dir;
  const SmallDisk disk(dir.path() / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "mounting needs root";
  disk.fill();
  EXPECT_TRUE(std::holds_alternative<Alone>(take_seat({dir.path() / "disk"}, request_of(0))));
  const std::vector<fs::path> folders{dir.path() / "disk", dir.path()};
  auto leader = take_seat(folders, request_of(0));
  ASSERT_TRUE(std::holds_alternative<Leader>(leader));
  auto follower = take_seat(folders, request_of(1));
  EXPECT_TRUE(std::holds_alternative<Follower>(follower));
}

TEST(Seats, StorageThatFillsUpLeavesAFollowerThatIsNotKnown) {
  TempDir dir;
  const SmallDisk disk(dir.path() / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "mounting needs root";
  auto leader = take_seat({dir.path() / "disk"}, request_of(0));
  ASSERT_TRUE(std::holds_alternative<Leader>(leader));
  ASSERT_TRUE(std::get<Leader>(leader).open({"/r", "/r/nodes/n1"}));
  disk.fill();
  auto seat = take_seat({dir.path() / "disk"}, request_of(1));
  ASSERT_TRUE(std::holds_alternative<Follower>(seat));
  auto& follower = std::get<Follower>(seat);
  EXPECT_FALSE(follower.registration());
  EXPECT_TRUE(std::holds_alternative<Follower::Opened>(follower.wait([] { return false; })));
}

TEST(Seats, WhatTheDeadLeftIsSweptAway) {
  TempDir dir;
  { const auto old = take_seat({dir.path()}, request_of(0, "slurm-1.0")); }
  const auto living = take_seat({dir.path()}, request_of(0, "slurm-2.0"));
  for (const char* launch : {"slurm-1.0", "slurm-2.0"})
    fs::last_write_time(run_folder_of(dir, launch, 1).parent_path(), fs::file_time_type::clock::now() - 2h);
  const auto next = take_seat({dir.path()}, request_of(0, "slurm-3.0"));
  EXPECT_FALSE(fs::exists(run_folder_of(dir, "slurm-1.0", 1)));
  EXPECT_TRUE(fs::exists(run_folder_of(dir, "slurm-2.0", 1))) << "its leader lives";
}

TEST(Seats, StorageIsLookedForInThisOrder) {
  using ::testing::ElementsAre;
  EXPECT_THAT(local_folders({}), ElementsAre("/dev/shm", "/tmp"));
  EXPECT_THAT(local_folders({{"XDG_RUNTIME_DIR", "/run/user/7"}}), ElementsAre("/run/user/7", "/dev/shm", "/tmp"));
  EXPECT_THAT(local_folders({{"XDG_RUNTIME_DIR", "relative"}}), ElementsAre("/dev/shm", "/tmp"));
  EXPECT_THAT(local_folders({{"XDG_RUNTIME_DIR", "/run/user/7"}, {"ERGOMETER_LOCAL_DIR", "/scratch"}}),
              ElementsAre("/scratch"));
}

}  // namespace
}  // namespace ergometer::test
