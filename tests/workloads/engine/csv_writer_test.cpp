#include "core/csv_writer.hpp"

#include <gtest/gtest.h>

#include "support/temp_dir.hpp"

namespace ergometer::workload {
namespace {

TEST(CsvWriter, QuotesWhatNeedsIt) {
  EXPECT_EQ(csv_field("lung.png"), "lung.png");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("a \"b\"\n"), "\"a \"\"b\"\"\n\"");
}

TEST(CsvWriter, WritesAHeaderAndLines) {
  const test::TempDir folder;
  auto file = CsvWriter::create((folder / "rows.csv").string(), "a,b");
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->write("1,2\n3,4\n"));
  EXPECT_TRUE(file->close());
  EXPECT_EQ(folder.read("rows.csv"), "a,b\n1,2\n3,4\n");
}

TEST(CsvWriter, NamesThePathThatCannotBeWritten) {
  const test::TempDir folder;
  const std::string path = (folder / "missing/rows.csv").string();
  const auto file = CsvWriter::create(path, "a");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message, path + ": cannot be written: No such file or directory");
}

TEST(CsvWriter, AFullDiskIsAnErrorAtTheLatestWhenClosing) {
  auto file = CsvWriter::create("/dev/full", "a");
  ASSERT_TRUE(file);
  static_cast<void>(file->write("1\n"));
  const auto closed = file->close();
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().message, "/dev/full: could not be written");
}

}  // namespace
}  // namespace ergometer::workload
