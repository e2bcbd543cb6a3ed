#include "base/file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temp_dir.hpp"

namespace ergometer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(HostRoot, PrefixesAbsolutePaths) {
  EXPECT_EQ(HostRoot("/x").path("/sys/class"), "/x/sys/class");
  EXPECT_EQ(HostRoot().path("/sys/class"), "/sys/class");
  EXPECT_TRUE(HostRoot().is_real());
  EXPECT_TRUE(HostRoot("/").is_real());
  EXPECT_FALSE(HostRoot("/x").is_real());
}

TEST(File, ReadsWholeFilesUpToABound) {
  const test::TempDir dir;
  dir.write("f", std::string(10'000, 'x'));
  EXPECT_EQ(read_file(dir / "f")->size(), 10'000U);
  const auto bounded = read_file(dir / "f", 5'000);
  ASSERT_FALSE(bounded);
  EXPECT_EQ(bounded.error().code, ErrorCode::corrupt);
  dir.write("empty", "");
  EXPECT_EQ(*read_file(dir / "empty"), "");
}

TEST(File, ErrorsSayWhatAndWhy) {
  const test::TempDir dir;
  EXPECT_EQ(read_file(dir / "none").error().code, ErrorCode::not_found);
  EXPECT_THAT(read_file(dir / "none").error().message, HasSubstr((dir / "none").string()));
  EXPECT_EQ(errno_error("read", "x", ENODEV).code, ErrorCode::lost);
  EXPECT_EQ(errno_error("read", "x", EACCES).code, ErrorCode::permission_denied);
  EXPECT_EQ(errno_error("read", "x", EAGAIN).code, ErrorCode::unavailable);
  EXPECT_FALSE(errno_error("write", "x", ENOSPC).hint.empty());
  EXPECT_FALSE(errno_error("write", "x", EROFS).hint.empty());
}

TEST(File, NumbersOfSensorFiles) {
  const test::TempDir dir;
  dir.write("good", "262143328850\n");
  EXPECT_EQ(*read_number(dir / "good"), 262143328850.0);
  for (const char* bad : {"", "\n", "N/A\n", "12abc", "nan"}) {
    dir.write("bad", bad);
    const auto number = read_number(dir / "bad");
    ASSERT_FALSE(number) << bad;
    EXPECT_EQ(number.error().code, ErrorCode::corrupt) << bad;
  }
  dir.write("huge", std::string(100'000, '1'));
  EXPECT_FALSE(read_number(dir / "huge"));
}

TEST(File, WritesAllOrNothing) {
  const test::TempDir dir;
  dir.write("f", "old");
  ASSERT_TRUE(write_file_atomically(dir / "f", "new"));
  EXPECT_EQ(dir.read("f"), "new");
  EXPECT_FALSE(write_file_atomically(dir / "none/f", "new"));
  EXPECT_THAT(list_dir(dir.path()), ElementsAre("f")) << "no temporary file stays";
}

TEST(File, FullDeviceIsAnErrorAndLeavesNothing) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const auto written = append_line("/dev/full", "x");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().hint, HasSubstr("free space"));
}

TEST(File, F98_AppendAfterAMissingLineEnd) {
  const test::TempDir dir;
  dir.write("f", "h1,h2\n1,2");
  ASSERT_TRUE(append_line(dir / "f", "3,4"));
  EXPECT_EQ(dir.read("f"), "h1,h2\n1,2\n3,4\n");
  ASSERT_TRUE(append_line(dir / "f", "5,6\n"));
  EXPECT_EQ(dir.read("f"), "h1,h2\n1,2\n3,4\n5,6\n");
}

TEST(File, F101_AppendToAnEmptyOrMissingFile) {
  const test::TempDir dir;
  dir.write("empty", "");
  ASSERT_TRUE(append_line(dir / "empty", "1"));
  ASSERT_TRUE(append_line(dir / "new", "1"));
  EXPECT_EQ(dir.read("empty"), "1\n");
  EXPECT_EQ(dir.read("new"), "1\n");
}

TEST(File, F102_OutputThatIsTheInput) {
  const test::TempDir dir;
  dir.write("run.JSON", "{}");
  std::filesystem::create_symlink(dir / "run.JSON", dir / "soft");
  std::filesystem::create_hard_link(dir / "run.JSON", dir / "hard");
  for (const char* output : {"run.JSON", "soft", "hard", "./run.JSON"}) {
    const auto allowed = refuse_same_file(dir / "run.JSON", dir.path() / output);
    ASSERT_FALSE(allowed) << output;
    EXPECT_FALSE(allowed.error().hint.empty());
  }
  EXPECT_TRUE(refuse_same_file(dir / "run.JSON", dir / "other"));
}

TEST(File, ListDirIsSortedAndForgiving) {
  const test::TempDir dir;
  for (const char* name : {"b", "a", "c"}) dir.write(name, "");
  EXPECT_THAT(list_dir(dir.path()), ElementsAre("a", "b", "c"));
  EXPECT_THAT(list_dir(dir / "none"), IsEmpty());
}

}  // namespace
}  // namespace ergometer
