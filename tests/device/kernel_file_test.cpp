// The helpers below the kernel file backends.
#include "device/kernel_file.hpp"

#include "device/cpu_topology.hpp"
#include "device/fake_tree.hpp"
#include "device/proc_stat.hpp"

namespace ergometer::test {
namespace {

TEST(KernelFile, ReadsAgainWhatChanged) {
  TempDir dir;
  dir.write("x", "1\n");
  KernelFile file(dir / "x");
  EXPECT_EQ(file.read().value(), "1\n");
  dir.write("x", "22\n");
  EXPECT_EQ(file.read().value(), "22\n");
  // Replaced by another file of the same name.
  dir.write("y", "333\n");
  std::filesystem::rename(dir / "y", dir / "x");
  EXPECT_EQ(file.read().value(), "333\n");
  std::filesystem::remove(dir / "x");
  EXPECT_EQ(file.read().error().code, ErrorCode::not_found);
  dir.write("x", "4\n");
  EXPECT_EQ(file.read().value(), "4\n");
}

TEST(KernelFile, BoundsAndKinds) {
  TempDir dir;
  dir.write("empty", "");
  dir.write("page", std::string(4096, 'a'));
  dir.write("more", std::string(4097, 'a'));
  dir.write("large", std::string(50000, 'b'));
  std::filesystem::create_directory(dir / "folder");
  EXPECT_EQ(KernelFile(dir / "empty").read().error().code, ErrorCode::corrupt);
  EXPECT_EQ(KernelFile(dir / "page").read().value().size(), 4096u);
  EXPECT_EQ(KernelFile(dir / "more").read().error().code, ErrorCode::corrupt);
  EXPECT_EQ(KernelFile(dir / "large", 50000).read().value().size(), 50000u);
  EXPECT_EQ(KernelFile(dir / "large", 49999).read().error().code, ErrorCode::corrupt);
  EXPECT_EQ(KernelFile(dir / "folder").read().error().code, ErrorCode::io);
}

TEST(KernelFile, EventsOnceAState) {
  TempDir dir;
  NumberFile file(dir / "n", "the number");
  Readings out;
  EXPECT_EQ(file.read(out), std::nullopt);
  EXPECT_EQ(file.read(out), std::nullopt);
  ASSERT_EQ(out.events.size(), 1u);
  EXPECT_EQ(out.events[0].kind, "lost");
  EXPECT_NE(out.events[0].detail.find("the number"), std::string::npos);
  dir.write("n", "x");
  EXPECT_EQ(file.read(out), std::nullopt);
  EXPECT_EQ(count_events(out, "rejected"), 1u);
  dir.write("n", "-5\n");
  EXPECT_EQ(file.read(out), -5);
  EXPECT_EQ(count_events(out, "back"), 1u);
}

TEST(CpuList, Forms) {
  EXPECT_EQ(parse_cpu_list("0,2-7\n"), (std::vector<int>{0, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(parse_cpu_list("0"), std::vector<int>{0});
  EXPECT_EQ(parse_cpu_list("\n"), std::vector<int>{});
  for (const char* bad : {"a", "1-", "-1", "3-2", "0-99999999", "1,,2", "1;2"})
    EXPECT_EQ(parse_cpu_list(bad), std::nullopt) << bad;
}

TEST(ProcStat, DamagedLines) {
  EXPECT_FALSE(parse_proc_stat("", 100));
  EXPECT_FALSE(parse_proc_stat("cpu  1 2\n", 100));
  EXPECT_FALSE(parse_proc_stat("cpu0 1 2 3 4\n", 100));
  const auto stat = parse_proc_stat("cpu  100 0 100 300 100\ncpu0 1 2 3\ncpux 1 2 3 4\ncpu1 10 0 0 10\nintr 9", 100);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->all.busy_s, 2.0);
  EXPECT_EQ(stat->all.total_s, 6.0);
  ASSERT_EQ(stat->cpus.size(), 1u);
  EXPECT_EQ(stat->cpus.at(1).busy_s, 0.1);
}

}  // namespace
}  // namespace ergometer::test
