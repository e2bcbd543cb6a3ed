// MarkerLog on files made record by record: half-written records, damage, marks by name, several processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "region/record.hpp"
#include "store/marker_log.hpp"
#include "support/temp_dir.hpp"

namespace ergometer {
namespace {

using marker::Record;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Record record(marker::Kind kind, std::int64_t t_ns, const std::string& text = "", std::int32_t tid = 7) {
  Record out{};
  out.kind = kind;
  out.tid = tid;
  out.t_ns = t_ns;
  out.index = marker::kNoIndex;
  out.length = static_cast<std::uint8_t>(text.size());
  std::memcpy(out.text, text.data(), text.size());
  return out;
}

Record ended(std::int64_t begin, std::int64_t end, const std::string& name, std::int32_t tid = 7) {
  Record out = record(marker::kBegin, begin, name, tid);
  out.value.end_ns = end;
  return out;
}

// A marker file in memory, written as a whole each time.
struct File {
  std::string name = "host-7-1.erg";
  std::vector<Record> records{Record{}};  // the first is the header

  explicit File(std::string file_name = "host-7-1.erg", int pid = 7) : name(std::move(file_name)) {
    marker::Header header{};
    std::memcpy(header.magic, marker::kMagic, sizeof marker::kMagic);
    header.record_bytes = marker::kRecordBytes;
    header.pid = pid;
    header.rank = -1;
    std::memcpy(static_cast<void*>(records.data()), &header, sizeof header);
  }
  std::uint64_t add(Record r) {
    records.push_back(r);
    return records.size() - 1;
  }
  void save(const TempDir& dir, std::size_t empty = 0) const {
    std::string bytes(reinterpret_cast<const char*>(records.data()), records.size() * sizeof(Record));
    bytes.append(empty * sizeof(Record), '\0');
    dir.write(name, bytes);
  }
};

std::vector<std::string> paths(const MarkerLog& log) {
  std::vector<std::string> out;
  for (const auto& region : log.regions(mono_ns(1000))) out.push_back(region.path);
  return out;
}

TEST(MarkerLog, NothingThere) {
  const TempDir dir;
  MarkerLog log(dir / "missing");
  log.poll();
  EXPECT_EQ(log.current(), "");
  EXPECT_THAT(log.regions(mono_ns(5)), IsEmpty());
}

TEST(MarkerLog, FollowsAFileThatGrows) {
  const TempDir dir;
  File file;
  MarkerLog log(dir.path());
  file.add(record(marker::kBegin, 10, "train"));
  file.save(dir, 4000);
  log.poll();
  EXPECT_EQ(log.current(), "train");
  const auto step = file.add(record(marker::kBegin, 20, "step"));
  file.save(dir, 4000);
  log.poll();
  EXPECT_EQ(log.current(), "train/step");
  file.records[step].value.end_ns = 30;
  file.save(dir, 4000);
  log.poll();
  EXPECT_EQ(log.current(), "train");
  file.add(record(marker::kBegin, 40, "step"));
  file.save(dir, 4000);
  log.poll();
  EXPECT_EQ(log.current(), "train/step[1]");
  EXPECT_THAT(paths(log), ElementsAre("train", "train/step[0]", "train/step[1]"));
  const auto regions = log.regions(mono_ns(1000));
  EXPECT_EQ(regions[1].end, mono_ns(30));
  EXPECT_TRUE(regions[2].cut);
  EXPECT_EQ(regions[2].end, mono_ns(1000));
  // Not before the last that is known of the process.
  EXPECT_EQ(log.regions(mono_ns(5))[0].end, mono_ns(40));
}

TEST(MarkerLog, ARecordThatIsHalfWrittenComesLater) {
  const TempDir dir;
  File file;
  MarkerLog log(dir.path());
  // A long name whose first record is not committed yet, and a record of another thread behind it.
  Record head = record(marker::kBegin, 10, std::string(24, 'n'), 7);
  head.more = 1;
  const auto slot = file.add(head);
  file.records[slot].kind = marker::kEmpty;
  file.add(record(marker::kText, 0, "-rest", 7));
  file.add(ended(11, 12, "other", 8));
  file.save(dir);
  log.poll();
  EXPECT_THAT(paths(log), ElementsAre("other"));
  file.records[slot].kind = marker::kBegin;
  file.save(dir);
  log.poll();
  EXPECT_THAT(paths(log), ElementsAre(std::string(24, 'n') + "-rest", "other"));
  EXPECT_EQ(log.damaged(), 0U);
}

TEST(MarkerLog, DamageIsSkippedAndCounted) {
  const TempDir dir;
  File file;
  file.add(ended(10, 20, "a"));
  Record wild = ended(1, 2, "wild");
  wild.kind = 99;
  file.add(wild);
  wild = ended(1, 2, "wild");
  wild.length = 200;
  file.add(wild);
  file.add(record(marker::kText, 0, "nothing before it"));
  Record unknown = record(marker::kNumber, 0, "key");
  unknown.id = 1ULL << 60;
  file.add(unknown);
  unknown.kind = marker::kEnd;
  file.add(unknown);
  file.add(ended(30, 40, "b"));
  file.save(dir);
  dir.write("foreign.erg", std::string(200, 'x'));
  dir.write("empty.erg", "");
  dir.write("short.erg", "ERGMARK1");
  dir.write("other.txt", "");
  MarkerLog log(dir.path());
  log.poll();
  log.poll();
  EXPECT_THAT(paths(log), ElementsAre("a", "b"));
  EXPECT_EQ(log.damaged(), 4U);
}

TEST(MarkerLog, MarksByName) {
  const TempDir dir;
  File file("host-shell-7.erg");
  file.add(record(marker::kBegin, 10, "job"));
  file.add(record(marker::kEnd, 11, "nothing of this name"));
  file.add(record(marker::kBegin, 20, "part"));
  Record text = record(marker::kString, 0, "note");
  text.more = 1;
  file.add(text);
  file.add(record(marker::kText, 0, "begun"));
  file.add(record(marker::kEnd, 30, "job"));  // before the part inside it
  Record loss = record(marker::kNumber, 0, "loss");
  loss.value.number = 0.5;
  file.add(loss);
  file.add(record(marker::kEnd, 40, "part"));
  file.add(record(marker::kEnd, 50, "part"));  // twice: ignored
  file.save(dir);
  MarkerLog log(dir.path());
  log.poll();
  const auto regions = log.regions(mono_ns(1000));
  ASSERT_EQ(regions.size(), 2U);
  EXPECT_EQ(regions[0].path, "job");
  EXPECT_EQ(regions[0].end, mono_ns(30));
  EXPECT_EQ(regions[0].attribute("loss"), "0.5");
  EXPECT_EQ(regions[1].path, "job/part");
  EXPECT_EQ(regions[1].end, mono_ns(40));
  EXPECT_EQ(regions[1].attribute("note"), "begun");
  EXPECT_FALSE(regions[1].cut);
}

TEST(MarkerLog, EachProcessStandsAtTheTop) {
  const TempDir dir;
  File first("host-7-1.erg", 7), second("host-8-2.erg", 8);
  first.add(record(marker::kBegin, 10, "train"));
  second.add(ended(15, 16, "train"));
  second.add(ended(20, 30, "train"));
  first.save(dir);
  second.save(dir);
  MarkerLog log(dir.path());
  log.poll();
  const auto regions = log.regions(mono_ns(1000));
  EXPECT_THAT(paths(log), ElementsAre("train", "train[0]", "train[1]"));
  EXPECT_EQ(regions[0].pid, 7);
  EXPECT_EQ(regions[2].pid, 8);
  // The process that wrote last has nothing open.
  EXPECT_EQ(log.current(), "");
}

TEST(MarkerLog, NamesAreMadeValidText) {
  const TempDir dir;
  File file;
  file.add(ended(10, 20, "caf\xE9/\xF0\x9F\x98\x80"));
  file.save(dir);
  MarkerLog log(dir.path());
  log.poll();
  EXPECT_THAT(paths(log), ElementsAre("caf\xEF\xBF\xBD_\xF0\x9F\x98\x80"));
}

TEST(MarkerLog, ForgottenEndsDoNotNestWithoutBound) {
  const TempDir dir;
  File file;
  for (int i = 0; i < 20000; ++i) file.add(record(marker::kBegin, 10 + i, "leak"));
  file.save(dir);
  MarkerLog log(dir.path());
  log.poll();
  const auto regions = log.regions(mono_ns(1000));
  ASSERT_EQ(regions.size(), 20000U);
  for (const auto& region : regions) ASSERT_LT(region.path.size(), 64 * 12U);
}

TEST(MarkerLog, EndedProcesses) {
  const TempDir dir;
  File dead("host-dead.erg", 1 << 30), alive("host-alive.erg", ::getpid());
  dead.save(dir);
  alive.save(dir);
  MarkerLog log(dir.path());
  log.poll();
  EXPECT_THAT(log.ended(), ElementsAre(dir / "host-dead.erg"));
}

}  // namespace
}  // namespace ergometer
