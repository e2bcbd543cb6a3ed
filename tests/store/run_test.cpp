// RunWriter and RunReader together: a run there and back, kills, full disks, foreign folders, other locales.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdlib>
#include <locale>

#include "base/file.hpp"
#include "ergometer/region.hpp"
#include "store/run_reader.hpp"
#include "store/run_writer.hpp"
#include "support/temp_dir.hpp"

namespace ergometer {
namespace {

using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SensorInfo sensor(const std::string& name, bool own_time) {
  SensorInfo out;
  out.name = name;
  out.interface = "test";
  out.own_time = own_time;
  Channel power, energy;
  power.column = "power_w";
  power.quantity = Quantity::power;
  energy.column = "energy_j";
  energy.quantity = Quantity::energy;
  energy.range = 262143.32885;
  out.channels = {power, energy};
  return out;
}

Row row(std::int64_t t, std::optional<double> power, std::optional<double> energy, std::int64_t width = 5) {
  return Row{mono_ns(t), Nanos(width), {power, energy}};
}

Node node_of(std::vector<SensorInfo> sensors) {
  Node node;
  node.name = "node1";
  node.sensors = std::move(sensors);
  return node;
}

// A writer on RUN below `dir` with node1 and its sensors written.
std::unique_ptr<RunWriter> start(const std::filesystem::path& run, const std::vector<SensorInfo>& sensors) {
  Manifest manifest;
  manifest.nodes = {"node1"};
  auto writer = RunWriter::create(run, manifest);
  EXPECT_TRUE(writer) << writer.error().message;
  EXPECT_TRUE((*writer)->write_node(node_of(sensors)));
  return std::move(*writer);
}

RunReader open(const std::filesystem::path& run) {
  auto reader = RunReader::open(run);
  EXPECT_TRUE(reader) << reader.error().message;
  return std::move(*reader);
}

TEST(Run, ThereAndBack) {
  const TempDir dir;
  const auto run = dir / "run";
  {
    const auto writer = start(run, {sensor("a", false), sensor("b/c", true)});
    const auto a = writer->open_samples("node1", sensor("a", false));
    const auto b = writer->open_samples("node1", sensor("b/c", true));
    ASSERT_TRUE(a && b);
    (*a)->append(std::vector{row(10, 0.1, 1.0 / 3), row(20, std::nullopt, 2e9)});
    ASSERT_TRUE(writer->flush());
    (*a)->append(std::vector{row(30, 1e-300, std::nullopt)});
    (*b)->append(std::vector{row(11, 1, 2)});
    writer->add_event("node1", {mono_ns(7), "a", "gap", "said \"no\", twice"});
    ASSERT_TRUE(writer->flush());
    ASSERT_TRUE(writer->flush());
    EXPECT_EQ(writer->open_samples("node1", sensor("a", false)).error().code, ErrorCode::exists);
    EXPECT_EQ(writer->open_samples("node2", sensor("a", false)).error().code, ErrorCode::not_found);
  }
  auto reader = open(run);
  EXPECT_EQ(reader.manifest().state, "running");
  EXPECT_THAT(reader.sensors("node1"), ElementsAre("a", "b/c"));
  const auto a = reader.samples("node1", "a");
  ASSERT_TRUE(a);
  EXPECT_THAT(a->t_ns, ElementsAre(10, 20, 30));
  EXPECT_THAT(a->read_ns, ElementsAre(5, 5, 5));
  EXPECT_EQ(a->columns[0][0], 0.1);
  EXPECT_EQ(a->columns[0][1], std::nullopt);
  EXPECT_EQ(a->columns[0][2], 1e-300);
  EXPECT_EQ(a->columns[1][0], 1.0 / 3);
  EXPECT_EQ(a->columns[1][1], 2e9);
  EXPECT_EQ(a->info.channels[1].range, 262143.32885);
  const auto b = reader.samples("node1", "b/c");
  ASSERT_TRUE(b);
  EXPECT_THAT(b->t_ns, ElementsAre(11));
  EXPECT_TRUE(b->info.own_time);
  const auto events = reader.events("node1");
  ASSERT_TRUE(events);
  ASSERT_THAT(*events, SizeIs(1));
  EXPECT_EQ((*events)[0].detail, "said \"no\", twice");
  EXPECT_THAT(reader.warnings(), IsEmpty());
  EXPECT_EQ(reader.samples("node1", "x").error().code, ErrorCode::not_found);
}

TEST(Run, ARunIsNeverMixedWithAnother) {
  const TempDir dir;
  dir.write("full/notes.txt", "x");
  dir.write("file", "x");
  const auto full = RunWriter::create(dir / "full", Manifest{});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::exists);
  EXPECT_THAT(full.error().message, HasSubstr("full exists and is not empty"));
  EXPECT_EQ(RunWriter::create(dir / "file", Manifest{}).error().code, ErrorCode::exists);
  EXPECT_EQ(RunWriter::create("", Manifest{}).error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(RunWriter::create(dir / "file/below", Manifest{}));
  EXPECT_FALSE(RunWriter::create("/proc/ergometer-test/run", Manifest{}));
  EXPECT_THAT(list_dir(dir.path()), ElementsAre("file", "full"));
  EXPECT_THAT(list_dir(dir / "full"), ElementsAre("notes.txt"));
}

TEST(Run, F98_EventsAfterALineWithoutEnd) {
  const TempDir dir;
  const auto writer = start(dir / "run", {});
  writer->add_event("node1", {mono_ns(1), "a", "gap", "first"});
  ASSERT_TRUE(writer->flush());
  const std::string events = "run/nodes/node1/events.csv";
  std::string text = dir.read(events);
  ASSERT_EQ(text.back(), '\n');
  text.pop_back();
  dir.write(events, text);
  writer->add_event("node1", {mono_ns(2), "a", "back", "second"});
  ASSERT_TRUE(writer->flush());
  EXPECT_EQ(dir.read(events), "t_ns,source,kind,detail\n1,a,gap,first\n2,a,back,second\n");
}

TEST(Run, F99_MissingValuesKeepTheirColumns) {
  const TempDir dir;
  {
    const auto writer = start(dir / "run", {sensor("a", true)});
    const auto a = writer->open_samples("node1", sensor("a", true));
    ASSERT_TRUE(a);
    for (int i = 0; i < 3; ++i) (*a)->append(std::vector{row(i, std::nullopt, i + 0.5)});
    ASSERT_TRUE(writer->flush());
  }
  const auto trace = open(dir / "run").samples("node1", "a");
  ASSERT_TRUE(trace);
  ASSERT_EQ(trace->rows(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(trace->columns[0][i], std::nullopt);
    EXPECT_EQ(trace->columns[1][i], static_cast<double>(i) + 0.5);
  }
}

TEST(Run, F101_EmptyFilesCountAsAbsent) {
  const TempDir dir;
  dir.write("run/run.json", "");
  const auto before = RunReader::open(dir / "run");
  ASSERT_FALSE(before);
  EXPECT_THAT(before.error().message, HasSubstr("its run.json is empty"));
  const auto writer = start(dir / "run", {sensor("a", true)});
  dir.write("run/nodes/node1/events.csv", "");
  dir.write("run/nodes/node1/regions.csv", "");
  dir.write("run/nodes/node1/samples/other.csv", "");
  dir.write("run/nodes/node2/node.json", "");
  writer->add_event("node1", {mono_ns(1), "a", "gap", ""});
  ASSERT_TRUE(writer->flush());
  EXPECT_EQ(dir.read("run/nodes/node1/events.csv"), "t_ns,source,kind,detail\n1,a,gap,\n");
  auto reader = open(dir / "run");
  EXPECT_THAT(reader.sensors("node1"), IsEmpty());
  EXPECT_EQ(reader.samples("node1", "other").error().code, ErrorCode::not_found);
  EXPECT_THAT(*reader.regions("node1"), IsEmpty());
  EXPECT_THAT(*reader.events("node2"), IsEmpty());
  ASSERT_THAT(reader.warnings(), SizeIs(1));
  EXPECT_THAT(reader.warnings()[0].message, HasSubstr("node2/node.json is missing or empty"));
}

TEST(Run, FoldersThatAreNoRun) {
  const TempDir dir;
  dir.write("empty/x", "x");
  dir.write("damaged/run.json", "{\"schema\": \"ergometer.run/1\", \"comm");
  EXPECT_THAT(RunReader::open(dir / "missing").error().message, HasSubstr("there is no run directory"));
  EXPECT_THAT(RunReader::open(dir / "empty/x").error().message, HasSubstr("but a file"));
  EXPECT_THAT(RunReader::open(dir / "empty").error().message, HasSubstr("its run.json is missing"));
  EXPECT_THAT(RunReader::open(dir / "damaged").error().message, HasSubstr("damaged/run.json is damaged or cut"));
}

TEST(Run, ADamagedNodeStillHasItsSamples) {
  const TempDir dir;
  dir.write("run/run.json", R"({"schema":"ergometer.run/1","nodes":["n","gone"]})");
  dir.write("run/nodes/n/node.json", "{");
  dir.write("run/nodes/n/samples/gpu0.csv", "t_ns,power_w\n1,100\n");
  auto reader = open(dir / "run");
  ASSERT_THAT(reader.nodes(), SizeIs(1));
  EXPECT_THAT(reader.warnings(), SizeIs(2));
  const auto trace = reader.samples("n", "gpu0");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->info.channels[0].domain, "gpu/0");
}

TEST(Run, RegionsOfARunThatEndsAndOfOneThatDoesNot) {
  const TempDir dir;
  const auto run = dir / "run";
  auto writer = start(run, {sensor("a", true)});
  const auto a = writer->open_samples("node1", sensor("a", true));
  ASSERT_TRUE(a);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("ERGOMETER_RUN", run.c_str(), 1);
    const auto outer = ergometer_begin("train");
    ergometer_end(ergometer_begin("step"));
    ::_exit(outer ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  const std::int64_t last = std::int64_t{1} << 61;
  (*a)->append(std::vector{row(last, 1, 1)});
  ASSERT_TRUE(writer->flush());

  auto running = open(run).regions("node1");
  ASSERT_TRUE(running);
  ASSERT_THAT(*running, SizeIs(2));
  EXPECT_TRUE((*running)[0].cut);
  EXPECT_EQ(to_ns((*running)[0].end), last);

  ASSERT_TRUE(writer->write_regions("node1", mono_ns(last + 1)));
  EXPECT_FALSE(std::filesystem::exists(run / "markers"));
  auto ended = open(run).regions("node1");
  ASSERT_TRUE(ended);
  ASSERT_THAT(*ended, SizeIs(2));
  EXPECT_EQ((*ended)[1].path, "train/step");
  EXPECT_EQ((*ended)[1].end, (*running)[1].end);
  EXPECT_TRUE((*ended)[0].cut);
  EXPECT_EQ(to_ns((*ended)[0].end), last + 1);
}

TEST(Run, YoungRowsWaitForALargerFrame) {
  const TempDir dir;
  const auto writer = start(dir / "run", {sensor("a", true), sensor("b", true)});
  auto* a = *writer->open_samples("node1", sensor("a", true));
  auto* b = *writer->open_samples("node1", sensor("b", true));
  const auto rows_of = [&](const char* name) { return open(dir / "run").samples("node1", name)->rows(); };
  ASSERT_TRUE(writer->flush());  // the headers
  a->append(std::vector{row(10, 1, 1)});
  b->append(std::vector{row(20, 1, 1)});
  ASSERT_TRUE(writer->flush(mono_ns(15)));
  EXPECT_EQ(rows_of("a"), 1U);
  EXPECT_EQ(rows_of("b"), 0U);
  b->append(std::vector{row(30, 1, 1)});
  ASSERT_TRUE(writer->flush(mono_ns(21)));
  EXPECT_EQ(rows_of("b"), 2U);
  a->append(std::vector{row(40, 1, 1)});
  ASSERT_TRUE(writer->flush());
  EXPECT_EQ(rows_of("a"), 2U);
}

TEST(Run, AKilledWriterLosesNothingThatWasFlushed) {
  const TempDir dir;
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto writer = start(dir / "run", {sensor("a", true)});
    auto* a = *writer->open_samples("node1", sensor("a", true));
    for (int i = 0;; ++i) {
      a->append(std::vector{row(2 * i, i, i), row(2 * i + 1, i, i)});
      if (!writer->flush() || ::write(pipe_ends[1], &i, sizeof i) != sizeof i) ::_exit(1);
    }
  }
  int flushed = -1;
  while (flushed < 200 && ::read(pipe_ends[0], &flushed, sizeof flushed) == sizeof flushed) {
  }
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  auto reader = open(dir / "run");
  const auto trace = reader.samples("node1", "a");
  ASSERT_TRUE(trace);
  ASSERT_GE(trace->rows(), 2U * 201);
  for (std::size_t i = 0; i < trace->rows(); ++i) ASSERT_EQ(trace->t_ns[i], static_cast<std::int64_t>(i));
}

TEST(Run, AFullDiskLosesNothingUntilItHasRoomAgain) {
  const TempDir dir;
  if (::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "mounting a small tmpfs needs root";
  {
    const auto writer = start(dir / "run", {sensor("a", true), sensor("b", true)});
    auto* a = *writer->open_samples("node1", sensor("a", true));
    auto* b = *writer->open_samples("node1", sensor("b", true));
    ASSERT_TRUE(writer->flush());
    dir.write("ballast", std::string(256 << 10, 'x'));
    std::vector<Row> rows;
    for (int i = 0; i < 3000; ++i) rows.push_back(row(i, 1.0 / (i + 1), i));
    a->append(rows);
    b->append(rows);
    writer->add_event("node1", {mono_ns(1), "a", "note", std::string(5000, 'e')});
    for (int i = 0; i < 3; ++i) {
      const auto full = writer->flush();
      ASSERT_FALSE(full);
      EXPECT_THAT(full.error().message, HasSubstr("cannot write"));
      EXPECT_THAT(full.error().hint, HasSubstr("free space"));
    }
    // What is there already opens.
    EXPECT_THAT(*open(dir / "run").samples("node1", "a"), ::testing::Field(&Trace::t_ns, IsEmpty()));
    const auto second = RunWriter::create(dir / "second", Manifest{});
    std::filesystem::remove(dir / "ballast");
    a->append(std::vector{row(3000, 1, 1)});
    ASSERT_TRUE(writer->flush());
  }
  auto reader = open(dir / "run");
  const auto a = reader.samples("node1", "a"), b = reader.samples("node1", "b");
  const auto events = reader.events("node1");
  EXPECT_TRUE(a && b && events);
  if (a && b && events) {
    EXPECT_EQ(a->rows(), 3001U);
    EXPECT_EQ(b->rows(), 3000U);
    EXPECT_EQ(events->size(), 1U);
    EXPECT_THAT(reader.warnings(), IsEmpty());
  }
  ::umount(dir.path().c_str());
}

TEST(Run, RowsBeyondTheBufferAreDroppedOldestFirstAndNoted) {
  const TempDir dir;
  const auto writer = start(dir / "run", {sensor("a", true)});
  auto* a = *writer->open_samples("node1", sensor("a", true));
  std::vector<Row> rows;
  std::int64_t t = 0;
  // Some 70 MiB of text without a flush.
  for (int batch = 0; batch < 20; ++batch) {
    rows.clear();
    for (int i = 0; i < 70000; ++i, ++t) rows.push_back(row(1000000000000 + t, 1.0 / 3, 2.0 / 3));
    a->append(rows);
  }
  ASSERT_TRUE(writer->flush());
  auto reader = open(dir / "run");
  const auto trace = reader.samples("node1", "a");
  const auto events = reader.events("node1");
  ASSERT_TRUE(trace && events);
  ASSERT_THAT(*events, SizeIs(1));
  EXPECT_EQ((*events)[0].kind, "lost");
  EXPECT_EQ((*events)[0].t, mono_ns(1000000000000));
  const auto lost = static_cast<std::size_t>(t) - trace->rows();
  EXPECT_GT(lost, 0U);
  EXPECT_THAT((*events)[0].detail, HasSubstr(std::to_string(lost) + " rows"));
  EXPECT_EQ(trace->t_ns.back(), 1000000000000 + t - 1);
  EXPECT_THAT(reader.warnings(), IsEmpty());
}

// A locale with decimal comma and grouping, for as long as it lives. The C library's own locale is changed as well
// where such a one is installed.
class CommaLocale {
 public:
  CommaLocale() : before_(std::locale::global(std::locale(std::locale::classic(), new Comma))) {
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"})
      c_locale_ = c_locale_ || std::setlocale(LC_ALL, name);
  }
  ~CommaLocale() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, "C");
  }
  [[nodiscard]] bool c_locale() const { return c_locale_; }

 private:
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::locale before_;
  bool c_locale_ = false;
};

TEST(Run, F110_NumbersAreReadWhateverTheHostsLocale) {
  const TempDir dir;
  dir.write("run/run.json", R"({"schema":"ergometer.run/1","overhead":{"cpu_s":0.25}})");
  dir.write("run/nodes/n/node.json", R"({"schema":"ergometer.node/1","gpus":[{"power_limit_w":212.5}]})");
  dir.write("run/nodes/n/samples/gpu0.csv", "t_ns,power_w\n1,1.5e-3\n2,-273.15\n");
  const CommaLocale locale;
  auto reader = open(dir / "run");
  ASSERT_TRUE(reader.manifest().overhead);
  EXPECT_EQ(reader.manifest().overhead->cpu_s, 0.25);
  EXPECT_EQ(reader.nodes().at(0).gpus.at(0).power_limit_w, 212.5);
  const auto trace = reader.samples("n", "gpu0");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->columns[0][0], 0.0015);
  EXPECT_EQ(trace->columns[0][1], -273.15);
  RecordProperty("c_locale_checked", locale.c_locale() ? "yes" : "no: none with a decimal comma is installed");
}

TEST(Run, F111_NumbersAreWrittenWhateverTheHostsLocale) {
  const TempDir dir;
  const CommaLocale locale;
  {
    const auto writer = start(dir / "run", {sensor("a", true)});
    auto* a = *writer->open_samples("node1", sensor("a", true));
    a->append(std::vector{row(1234567, 1234567.5, 12.5)});
    writer->add_event("node1", {mono_ns(1234567), "a", "note", ""});
    Manifest manifest;
    manifest.overhead = Overhead{1234567.5, 1234567.0};
    ASSERT_TRUE(writer->write_manifest(manifest));
    ASSERT_TRUE(writer->flush());
  }
  EXPECT_THAT(dir.read("run/run.json"), HasSubstr("\"cpu_s\": 1234567.5"));
  EXPECT_THAT(dir.read("run/nodes/node1/events.csv"), HasSubstr("\n1234567,a"));
  EXPECT_THAT(dir.read("run/nodes/node1/node.json"), HasSubstr("262143.32885"));
  const auto trace = open(dir / "run").samples("node1", "a");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->t_ns.at(0), 1234567);
  EXPECT_EQ(trace->columns[0][0], 1234567.5);
  EXPECT_EQ(trace->columns[1][0], 12.5);
  RecordProperty("c_locale_checked", locale.c_locale() ? "yes" : "no: none with a decimal comma is installed");
}

}  // namespace
}  // namespace ergometer
