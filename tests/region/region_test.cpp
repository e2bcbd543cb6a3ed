// The marker library as a program uses it, read back through MarkerLog. Each case runs in a process of its own, since
// a process decides once whether it marks.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <future>
#include <set>
#include <thread>

#include "ergometer/region.hpp"
#include "store/marker_log.hpp"
#include "support/temp_dir.hpp"

namespace ergometer {
namespace {

using test::TempDir;

// Runs `body` in a child with ERGOMETER_RUN set to `run` ("" unsets it); returns the wait status.
int in_child(const std::filesystem::path& run, const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (run.empty())
      ::unsetenv("ERGOMETER_RUN");
    else
      ::setenv("ERGOMETER_RUN", run.c_str(), 1);
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}) ::unsetenv(name);
    body();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

std::vector<Region> regions_of(const TempDir& run, std::int64_t cut_ns = 0) {
  MarkerLog log(run / "markers");
  log.poll();
  EXPECT_EQ(log.damaged(), 0U);
  return log.regions(mono_ns(cut_ns));
}

std::vector<std::string> paths(const std::vector<Region>& regions) {
  std::vector<std::string> out;
  for (const auto& region : regions) out.push_back(region.path);
  return out;
}

using Paths = std::vector<std::string>;

TEST(Region, NestsIndexesAndNumbersSiblings) {
  const TempDir run;
  ASSERT_EQ(in_child(run.path(),
                     [] {
                       ScopedRegion train("train");
                       for (int e = 0; e < 2; ++e) {
                         ScopedRegion epoch("epoch", 5 + e);
                         for (int s = 0; s < 2; ++s) ScopedRegion step("step");
                         ScopedRegion validation("validation");
                       }
                     }),
            0);
  const auto regions = regions_of(run);
  EXPECT_EQ(paths(regions), (Paths{"train", "train/epoch[5]", "train/epoch[5]/step[0]", "train/epoch[5]/step[1]",
                                   "train/epoch[5]/validation", "train/epoch[6]", "train/epoch[6]/step[0]",
                                   "train/epoch[6]/step[1]", "train/epoch[6]/validation"}));
  for (const auto& region : regions) {
    EXPECT_FALSE(region.cut);
    EXPECT_LE(region.begin, region.end);
    EXPECT_EQ(region.tid, region.pid);
    EXPECT_EQ(region.rank, -1);
    EXPECT_GE(region.begin, regions[0].begin);
    EXPECT_LE(region.end, regions[0].end);
  }
}

TEST(Region, CProgram) {
  const TempDir run;
  const char* program = std::getenv("ERGOMETER_MARKS_C");
  if (!program) GTEST_SKIP() << "ERGOMETER_MARKS_C is not set; run by ctest";
  ASSERT_EQ(in_child(run.path(), [&] { ::execl(program, program, nullptr); }), 0);
  const auto regions = regions_of(run);
  ASSERT_EQ(paths(regions), (Paths{"train", "train/epoch[0]", "train/epoch[1]", "train/epoch[2]"}));
  using Attributes = decltype(Region::attributes);
  EXPECT_EQ(regions[2].attributes, (Attributes{{"loss", "0.5"}, {"note", "a=b;c\\d"}}));
  for (const auto& region : regions) EXPECT_FALSE(region.cut);
}

TEST(Region, KilledProcessKeepsClosedRegionsAndCutsOpenOnes) {
  const TempDir run;
  const char* program = std::getenv("ERGOMETER_MARKS_C");
  if (!program) GTEST_SKIP() << "ERGOMETER_MARKS_C is not set; run by ctest";
  const int status = in_child(run.path(), [&] { ::execl(program, program, "killed", nullptr); });
  ASSERT_TRUE(WIFSIGNALED(status));
  const std::int64_t cut = std::int64_t{1} << 62;
  const auto regions = regions_of(run, cut);
  ASSERT_EQ(regions.size(), 4U);
  EXPECT_EQ(std::vector<bool>({regions[0].cut, regions[1].cut, regions[2].cut, regions[3].cut}),
            std::vector<bool>({true, false, false, true}));
  EXPECT_EQ(to_ns(regions[0].end), cut);
  EXPECT_EQ(to_ns(regions[3].end), cut);
  EXPECT_EQ(regions[3].attribute("loss"), "0.3333333333333333");
  // A cut time before the last record does not end a region before what is known of it.
  const auto early = regions_of(run, 1);
  EXPECT_GE(early[0].end, early[2].end);
}

TEST(Region, InactiveDoesNothingAndCreatesNothing) {
  const TempDir run;
  run.write("file", "");
  ::mkdir((run / "sealed").c_str(), 0777);
  for (const std::filesystem::path& where : {std::filesystem::path(), run / "missing", run / "file"}) {
    ASSERT_EQ(in_child(where,
                       [] {
                         errno = 77;
                         const auto region = ergometer_begin("x");
                         ergometer_number(region, "a", 1);
                         ergometer_text(region, "b", "c");
                         ergometer_end(region);
                         EXPECT_EQ(region, 0U);
                         EXPECT_EQ(errno, 77);
                         EXPECT_EQ(ergometer_state_, -1);
                       }),
              0);
  }
  EXPECT_FALSE(std::filesystem::exists(run / "missing"));
  EXPECT_FALSE(std::filesystem::exists(run / "sealed/markers"));
}

TEST(Region, LongNamesTextsAndForbiddenCharacters) {
  const TempDir run;
  const std::string long_name = std::string(24, 'a') + std::string(500, 'b') + "\xC3\xA9";
  const std::string value = std::string(2000, 'v') + "\nend";
  // A two-byte character across the limit is left out whole.
  const std::string too_long = std::string(999, 'n') + "\xC3\xA9 and more";
  ASSERT_EQ(in_child(run.path(),
                     [&] {
                       ScopedRegion first(long_name.c_str());
                       first.set("text", value);
                       first.set("text", value);
                       first.set("a key of more than twenty-four bytes", 1.5);
                       first.set("missing", 0.0 / 0.0);
                       first.end();
                       ScopedRegion second(too_long.c_str());
                       ScopedRegion third("a/b[c]\n");
                       ScopedRegion fourth("");
                       fourth.set("empty", "");
                     }),
            0);
  const auto regions = regions_of(run);
  ASSERT_EQ(regions.size(), 4U);
  EXPECT_EQ(regions[0].path, long_name);
  using Attributes = decltype(Region::attributes);
  EXPECT_EQ(regions[0].attributes, (Attributes{{"text", value}, {"a key of more than twent", "1.5"}}));
  EXPECT_EQ(regions[1].path, std::string(999, 'n'));
  EXPECT_EQ(regions[2].name(), "a_b_c__");
  EXPECT_EQ(regions[3].name(), "_");
  EXPECT_EQ(regions[3].attributes, (Attributes{{"empty", ""}}));
}

TEST(Region, ThreadsNestApartAndLoseNothing) {
  const TempDir run;
  constexpr int kThreads = 8, kSteps = 4000;
  ASSERT_EQ(in_child(run.path(),
                     [] {
                       std::vector<std::thread> threads;
                       for (int t = 0; t < kThreads; ++t)
                         threads.emplace_back([t] {
                           ScopedRegion worker("worker", t);
                           for (int i = 0; i < kSteps; ++i) {
                             ScopedRegion step("step", i);
                             if (i % 100 == 0) ScopedRegion named("a name that needs more than one record");
                           }
                         });
                       for (auto& thread : threads) thread.join();
                     }),
            0);
  const auto regions = regions_of(run);
  ASSERT_EQ(regions.size(), static_cast<std::size_t>(kThreads * (1 + kSteps + kSteps / 100)));
  std::map<std::string, int> seen;
  std::map<int, std::string> worker_of;
  for (const auto& region : regions) {
    EXPECT_FALSE(region.cut);
    ++seen[region.path];
    const std::string worker = region.path.substr(0, region.path.find('/'));
    EXPECT_EQ(worker_of.emplace(region.tid, worker).first->second, worker);
  }
  EXPECT_EQ(seen.size(), regions.size());
  EXPECT_EQ(seen["worker[7]/step[3999]"], 1);
  EXPECT_EQ(seen["worker[0]/step[100]/a name that needs more than one record"], 1);
}

TEST(Region, EndedByAnotherThreadAndOutOfOrder) {
  const TempDir run;
  ASSERT_EQ(in_child(run.path(),
                     [] {
                       const auto a = ergometer_begin("a");
                       const auto b = ergometer_begin("b");
                       std::thread([a] { ergometer_end(a); }).join();
                       const auto c = ergometer_begin("c");  // inside b, which is inside a
                       ergometer_end(b);
                       const auto d = ergometer_begin("d");  // inside c
                       ergometer_end(c);
                       ergometer_end(d);
                       const auto e = ergometer_begin("e");  // all have ended
                       ergometer_end(e);
                     }),
            0);
  const auto regions = regions_of(run);
  EXPECT_EQ(paths(regions), (Paths{"a", "a/b", "a/b/c", "a/b/c/d", "e"}));
  EXPECT_LT(regions[0].end, regions[2].begin);
  EXPECT_LT(regions[1].end, regions[2].end);
}

TEST(Region, ForkedChildWritesItsOwnFile) {
  const TempDir run;
  ASSERT_EQ(in_child(run.path(),
                     [] {
                       ScopedRegion outer("parent");
                       const pid_t child = ::fork();
                       if (child == 0) {
                         outer.set("from", "child");  // not the child's to change
                         {
                           ScopedRegion inner("child");
                           outer.end();  // nor to end
                           ::usleep(1000);
                         }
                         ::_exit(0);
                       }
                       int status = 0;
                       ::waitpid(child, &status, 0);
                       EXPECT_EQ(status, 0);
                     }),
            0);
  const auto regions = regions_of(run);
  ASSERT_EQ(paths(regions), (Paths{"parent", "child"}));
  EXPECT_NE(regions[0].pid, regions[1].pid);
  EXPECT_EQ(regions[1].tid, regions[1].pid);
  EXPECT_TRUE(regions[0].attributes.empty());
  EXPECT_GE(regions[0].end, regions[1].end);
  EXPECT_FALSE(regions[1].cut);
}

TEST(Region, ForkWhileOtherThreadsMark) {
  const TempDir run;
  ASSERT_EQ(in_child(run.path(),
                     [] {
                       std::atomic<bool> stop = false;
                       std::thread busy([&] {
                         // With pauses: marking without any for as long as 20 forks take writes gigabytes.
                         while (!stop) {
                           for (int i = 0; i < 1000; ++i) ScopedRegion step("busy");
                           std::this_thread::sleep_for(std::chrono::microseconds(100));
                         }
                       });
                       for (int i = 0; i < 20; ++i) {
                         const pid_t child = ::fork();
                         if (child == 0) {
                           { ScopedRegion inner("forked", i); }
                           ::_exit(0);
                         }
                         int status = -1;
                         ::waitpid(child, &status, 0);
                         EXPECT_EQ(status, 0);
                       }
                       stop = true;
                       busy.join();
                     }),
            0);
  std::set<std::string> forked;
  for (const auto& region : regions_of(run))
    if (region.name() == "forked") forked.insert(region.path);
  EXPECT_EQ(forked.size(), 20U);
}

TEST(Region, RankFromTheMostSpecificLauncher) {
  const TempDir run;
  ASSERT_EQ(in_child(run.path(),
                     [] {
                       ::setenv("RANK", "3", 1);
                       ::setenv("SLURM_PROCID", "7", 1);
                       ::setenv("PMI_RANK", "not a number", 1);
                       ScopedRegion region("x");
                     }),
            0);
  EXPECT_EQ(regions_of(run).at(0).rank, 7);
}

TEST(Region, SurvivesAProgramThatClosesDescriptorsAndLeavesItsFolder) {
  const TempDir run;
  ASSERT_EQ(in_child(run.path(),
                     [] {
                       { ScopedRegion first("first"); }
                       ::syscall(SYS_close_range, 3U, ~0U, 0U);
                       EXPECT_EQ(::chdir("/"), 0);
                       for (int i = 0; i < 5000; ++i) ScopedRegion step("step");
                     }),
            0);
  EXPECT_EQ(regions_of(run).size(), 5001U);
}

TEST(Region, FullDiskTurnsMarkersOffAndKillsNobody) {
  const TempDir run;
  if (::mount("tmpfs", run.path().c_str(), "tmpfs", 0, "size=4500k") != 0)
    GTEST_SKIP() << "mounting a small tmpfs needs root";
  const int status = in_child(run.path(), [] {
    for (int i = 0; i < 80000; ++i) ScopedRegion step("step");
    EXPECT_EQ(ergometer_state_, -1);
    EXPECT_EQ(ergometer_begin("x"), 0U);
  });
  const auto count = regions_of(run).size();
  ::umount(run.path().c_str());
  EXPECT_EQ(status, 0);
  // Two chunks of 2 MiB fit: 65535 records beside the header.
  EXPECT_EQ(count, 65535U);
}

TEST(Region, ManyThousandsGrowTheFile) {
  const TempDir run;
  ASSERT_EQ(in_child(run.path(),
                     [] {
                       for (int i = 0; i < 100000; ++i) ScopedRegion step("step", i);
                     }),
            0);
  const auto regions = regions_of(run);
  ASSERT_EQ(regions.size(), 100000U);
  EXPECT_EQ(regions.back().path, "step[99999]");
}

}  // namespace
}  // namespace ergometer
