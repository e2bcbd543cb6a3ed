// The sensor `tree` of the procfs backend over real processes.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "device/fake_tree.hpp"
#include "device/procfs/tree.hpp"

namespace ergometer::test {
namespace {

// A child process that runs `body` and then sleeps until the test ends it.
class Child {
 public:
  explicit Child(const std::function<void()>& body) {
    int ready[2];
    if (::pipe(ready) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setpgid(0, 0);
      body();
      if (::write(ready[1], "x", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::setpgid(pid_, pid_);
    ::close(ready[1]);
    char byte = 0;
    if (::read(ready[0], &byte, 1) != 1) ADD_FAILURE() << "the child did not get ready";
    ::close(ready[0]);
  }
  ~Child() { end(); }
  [[nodiscard]] int pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

double cpu_seconds(clockid_t id) {
  timespec t{};
  ::clock_gettime(id, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

void burn(double wanted_s) {
  const double begin = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin < wanted_s) {
  }
}

TEST(Procfs, F68_MemoryOnceAndCpuOfChildren) {
  constexpr std::size_t kBytes = 128 << 20;
  FakeTree world;
  const auto tree = procfs::make_tree_sensor(Host{HostRoot{}, {}, world.clock}, ::getpid());
  const double before = read_row(*tree)[0].value();
  Child family([] {
    void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(memory, 1, kBytes);
    for (int i = 0; i < 10; ++i)
      if (::fork() == 0)
        for (;;) ::pause();
    burn(0.4);
  });
  world.clock->mono += 5'000'000'000;
  auto row = read_row(*tree);
  const double pss = row[column(*tree, "pss_bytes")].value(), rss = row[column(*tree, "rss_sum_bytes")].value();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const double share = 1.0;  // the sanitizer's own memory is in the processes
#else
  const double share = 0.1;
#endif
  EXPECT_NEAR(pss, kBytes, share * kBytes);
  EXPECT_GT(rss, 10.0 * kBytes) << "the sum of RSS has its own name";
  EXPECT_EQ(row[column(*tree, "process_count")], 11.0);
  // The rest is forking and touching memory.
  EXPECT_GE(row[0].value() - before, 0.35);
  EXPECT_LE(row[0].value() - before, 2.0);
  // Between the slow readings the value is missing, not repeated.
  world.clock->mono += 1'000'000'000;
  EXPECT_EQ(read_row(*tree)[column(*tree, "pss_bytes")], std::nullopt);
  const double with_family = row[0].value();
  family.end();
  row = read_row(*tree);
  EXPECT_GE(row[0].value(), with_family);
  // The grandchildren end a moment after their parent.
  for (int i = 0; i < 1000 && row[column(*tree, "process_count")] != 0.0; ++i) {
    ::usleep(5000);
    row = read_row(*tree);
    EXPECT_GE(row[0].value(), with_family);
  }
  EXPECT_EQ(row[column(*tree, "process_count")], 0.0);
}

TEST(Procfs, AChildThatIsAlreadyGoneCounts) {
  FakeTree world;
  const auto tree = procfs::make_tree_sensor(Host{HostRoot{}, {}, world.clock}, ::getpid());
  const double before = read_row(*tree)[0].value();
  {
    Child child([] { burn(0.2); });
  }
  EXPECT_GE(read_row(*tree)[0].value() - before, 0.15);
}

// Another rank: a child of this process's that is a root itself, with a child of its own that has burnt some CPU time and
// lives, or has ended.
class OtherRank {
 public:
  explicit OtherRank(bool ends) {
    int ready[2];
    if (::pipe(ready) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setpgid(0, 0);
      const pid_t command = ::fork();
      if (command == 0) {
        burn(0.3);
        if (ends) ::_exit(0);
        if (::write(ready[1], "x", 1) != 1) ::_exit(1);
        for (;;) ::pause();
      }
      if (ends) {
        ::waitpid(command, nullptr, 0);
        if (::write(ready[1], "x", 1) != 1) ::_exit(1);
      }
      for (;;) ::pause();
    }
    ::setpgid(pid_, pid_);
    char byte = 0;
    if (::read(ready[0], &byte, 1) != 1) ADD_FAILURE() << "the other rank did not get ready";
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~OtherRank() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  [[nodiscard]] int pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

// A process without descendants, as the root of the first rank: the others do not lie below it.
TEST(Procfs, F92_TheProcessesOfOtherRanksAreInTheTree) {
  FakeTree world;
  const Child first([] {});
  const auto more = std::make_shared<ProcessRoots>();
  const auto tree = procfs::make_tree_sensor(Host{HostRoot{}, {}, world.clock}, first.pid(), more);
  const auto cpu = column(*tree, "cpu_s"), count = column(*tree, "process_count");
  OtherRank living(false), waited(true);
  auto row = read_row(*tree);
  EXPECT_EQ(row[count], 0.0);
  EXPECT_EQ(row[cpu], 0.0);
  more->add(living.pid());
  more->add(waited.pid());
  row = read_row(*tree);
  EXPECT_EQ(row[count], 1.0) << "the command of the one that lives, not the roots";
  EXPECT_GE(row[cpu].value(), 0.55);
  // What the rank told when it ended is known exactly, whatever the last reading saw.
  more->end(waited.pid(), 5.0);
  waited.end();
  row = read_row(*tree);
  EXPECT_GE(row[cpu].value(), 5.25);
  EXPECT_LT(row[cpu].value(), 5.6);
  living.end();
  const double last = row[cpu].value();
  row = read_row(*tree);
  EXPECT_GE(row[cpu].value(), last) << "it never falls";
  EXPECT_EQ(row[count], 0.0);
}

TEST(Procfs, ARankInsideTheTreeCountsOnce) {
  FakeTree world;
  const auto more = std::make_shared<ProcessRoots>();
  const auto tree = procfs::make_tree_sensor(Host{HostRoot{}, {}, world.clock}, ::getpid(), more);
  const auto cpu = column(*tree, "cpu_s");
  const double before = read_row(*tree)[cpu].value();
  OtherRank inside(true);
  const double seen = read_row(*tree)[cpu].value();
  EXPECT_GE(seen - before, 0.25);
  more->add(inside.pid());
  EXPECT_NEAR(read_row(*tree)[cpu].value(), seen, 0.1);
  inside.end();
  EXPECT_NEAR(read_row(*tree)[cpu].value(), seen, 0.1) << "what it had waited for is this process's now";
}

TEST(Procfs, DiskBytesOfAChildThatIsAlreadyGone) {
  constexpr std::size_t kBytes = 1 << 20;
  FakeTree world;
  const auto tree = procfs::make_tree_sensor(Host{HostRoot{}, {}, world.clock}, ::getpid());
  const auto before = read_row(*tree)[column(*tree, "disk_written_bytes")];
  if (!before) GTEST_SKIP() << "this kernel does not count the I/O of processes";
  const auto file = (world / "data").string();
  {
    Child child([&] {
      const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      const std::string data(kBytes, 'x');
      if (::write(fd, data.data(), data.size()) < 0 || ::fsync(fd) != 0) ::_exit(1);
    });
  }
  const double written = read_row(*tree)[column(*tree, "disk_written_bytes")].value() - *before;
  if (written == 0) GTEST_SKIP() << "the temporary folder is not on a disk";
  EXPECT_GE(written, static_cast<double>(kBytes));
}

}  // namespace
}  // namespace ergometer::test
