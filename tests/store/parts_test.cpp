// Runs that several machines write: who creates run.json, who owns a node's folder, and what a reader makes of the
// parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <thread>

#include "base/file.hpp"
#include "store/run_json.hpp"
#include "store/run_reader.hpp"
#include "store/run_writer.hpp"
#include "support/temp_dir.hpp"

namespace ergometer {
namespace {

using test::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr std::int64_t kSecond = 1'000'000'000;

Manifest run_of(const std::string& key, std::vector<std::string> nodes = {}) {
  Manifest m;
  m.name = "train";
  m.nodes = std::move(nodes);
  m.parts = Parts{key, "slurm", {}, {}, {}, {}};
  return m;
}

Manifest part_of(const std::string& node, const std::string& boot) {
  Manifest m;
  m.place = Place{};
  m.place->node = node;
  m.place->hostname = node;
  m.place->boot_id = boot;
  return m;
}

// A part from second `begin` to `end` of its own clock, with one reading of power a second and one region over all.
void write_part(const std::filesystem::path& run, Manifest part, int begin, int end, const Manifest& identity,
                int rank = -1) {
  auto writer = RunWriter::join(run, identity, part);
  ASSERT_TRUE(writer) << writer.error().message;
  Node node;
  node.name = (*writer)->node();
  SensorInfo sensor;
  sensor.name = "gpu0";
  sensor.own_time = true;
  Channel power;
  power.column = "power_w";
  power.quantity = Quantity::power;
  sensor.channels = {power};
  node.sensors = {sensor};
  ASSERT_TRUE((*writer)->write_node(node));
  const auto stream = (*writer)->open_samples(node.name, sensor);
  ASSERT_TRUE(stream);
  for (int t = begin; t <= end; ++t) (*stream)->append(std::vector{Row{mono_ns(t * kSecond), Nanos(0), {100.0}}});
  (*writer)->add_event(node.name, {mono_ns(begin * kSecond), "gpu0", "note", ""});
  part.begin = mono_ns(begin * kSecond);
  part.end = mono_ns(end * kSecond);
  part.state = "complete";
  if (rank >= 0 && part.ranks.empty()) part.ranks = {{rank, 1, node.name, 0, {}, part.begin, part.end}};
  ASSERT_TRUE((*writer)->flush());
  ASSERT_TRUE(write_file_atomically((*writer)->marker_root() / "regions.csv",
                                    "t_begin_ns,t_end_ns,pid,tid,rank,path,attributes\n" +
                                        std::to_string(begin * kSecond) + "," + std::to_string(end * kSecond) +
                                        ",1,1," + (rank >= 0 ? std::to_string(rank) : "") + ",train,\n"));
  ASSERT_TRUE((*writer)->write_manifest(part));
}

std::vector<std::string> codes(const std::vector<Warning>& warnings) {
  std::vector<std::string> out;
  for (const auto& w : warnings) out.push_back(w.code);
  return out;
}

RunReader open(const std::filesystem::path& run) {
  auto reader = RunReader::open(run);
  EXPECT_TRUE(reader) << reader.error().message;
  return std::move(*reader);
}

TEST(Join, ManyAtOnceMakeOneRun) {
  const TempDir dir;
  constexpr int kMachines = 16;
  std::latch start(kMachines);
  std::vector<std::string> names(kMachines), first(kMachines);
  {
    std::vector<std::jthread> machines;
    for (int i = 0; i < kMachines; ++i)
      machines.emplace_back([&, i] {
        Manifest run = run_of("slurm-1.0");
        run.name = "by " + std::to_string(i);
        start.arrive_and_wait();
        // All call themselves alike.
        const auto writer = RunWriter::join(dir / "run", run, part_of("node", "boot-" + std::to_string(i) + "xxxx"));
        if (!writer) return;
        names[static_cast<std::size_t>(i)] = (*writer)->node();
        first[static_cast<std::size_t>(i)] = (*writer)->run().name;
      });
  }
  // One of them wrote run.json and everybody knows its words.
  EXPECT_THAT(first, ::testing::Each(first.front()));
  EXPECT_NE(first.front(), "");
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
  EXPECT_EQ(std::count(names.begin(), names.end(), "node"), 1);
  // Nothing else is left behind.
  EXPECT_THAT(list_dir(dir / "run"), ElementsAre("nodes", "run.json"));
  EXPECT_EQ(list_dir(dir / "run/nodes"), names);
  for (const auto& name : names) {
    EXPECT_THAT(list_dir(dir / "run/nodes" / name), ElementsAre("markers", "part.json", "samples"));
    const auto text = read_file(dir / "run/nodes" / name / "part.json");
    EXPECT_EQ(part_from_json(*text, "")->place->node, name);
  }
}

TEST(Join, NamesakesAreToldByTheirBootId) {
  const TempDir dir;
  const auto name = [&](const Manifest& part) {
    const auto writer = RunWriter::join(dir / "run", run_of("k"), part);
    return writer ? (*writer)->node() : writer.error().message;
  };
  EXPECT_EQ(name(part_of("node", "0123456789")), "node");
  EXPECT_EQ(name(part_of("node", "abcdef0123")), "node-abcdef01");
  Manifest other = part_of("node", "abcdef0123");
  other.place->host_root = "/elsewhere";
  EXPECT_EQ(name(other), "node-abcdef01-2");
  // The same machine again is no other machine.
  EXPECT_THAT(name(part_of("node", "abcdef0123")), HasSubstr("has a part of this machine already: node-abcdef01"));
  EXPECT_THAT(list_dir(dir / "run/nodes"), ElementsAre("node", "node-abcdef01", "node-abcdef01-2"));
}

TEST(Join, NothingElseIsJoined) {
  const TempDir dir;
  const auto message = [&](const std::filesystem::path& run) {
    const auto writer = RunWriter::join(run, run_of("slurm-2.0"), part_of("n", "b"));
    return writer ? std::string("joined") : writer.error().message + " | " + writer.error().hint;
  };
  ASSERT_TRUE(RunWriter::join(dir / "other", run_of("slurm-1.0"), part_of("n", "b")));
  EXPECT_THAT(message(dir / "other"), HasSubstr("belongs to another launch: slurm-1.0, this one is slurm-2.0"));
  ASSERT_TRUE(RunWriter::create(dir / "single", Manifest{}));
  EXPECT_THAT(message(dir / "single"), HasSubstr("holds a run of one machine"));
  dir.write("full/notes.txt", "mine");
  EXPECT_THAT(message(dir / "full"), HasSubstr("exists and is not empty | choose another name with -o"));
  EXPECT_EQ(*read_file(dir / "full/notes.txt"), "mine");
  dir.write("file", "x");
  EXPECT_THAT(message(dir / "file"), HasSubstr("exists and is no folder"));
  // A broken run.json is never written over.
  dir.write("broken/run.json", "{");
  EXPECT_THAT(message(dir / "broken"), HasSubstr("is damaged or cut"));
  dir.write("empty/run.json", "");
  EXPECT_EQ(message(dir / "empty"), "joined");
}

TEST(Parts, MarkersOfAPartAreItsOwn) {
  const TempDir dir;
  auto writer = RunWriter::join(dir / "run", run_of("k"), part_of("n", "b"));
  ASSERT_TRUE(writer);
  EXPECT_EQ((*writer)->marker_root(), dir / "run/nodes/n");
  ASSERT_TRUE((*writer)->write_regions("n", mono_ns(1)));
  EXPECT_TRUE(read_file(dir / "run/nodes/n/regions.csv"));
  EXPECT_FALSE(std::filesystem::exists(dir / "run/nodes/n/markers"));
}

TEST(Parts, EverythingIsGivenInTheReferencesTime) {
  const TempDir dir;
  const auto identity = run_of("k", {"n1", "n2"});
  write_part(dir / "run", part_of("n1", "a"), 100, 110, identity, 0);
  Manifest two = part_of("n2", "b");
  // n2's clock is an hour ahead, and gains a second in ten.
  two.clock = ClockLink{"n1",
                        ClockLink::Method::exchange,
                        {{mono_ns(3700 * kSecond), Nanos(-3600 * kSecond), Nanos(5000)},
                         {mono_ns(3710 * kSecond), Nanos(-3601 * kSecond), Nanos(7000)}}};
  two.idle_before = Interval{mono_ns(3700 * kSecond), mono_ns(3705 * kSecond)};
  write_part(dir / "run", two, 3700, 3710, identity, 1);
  auto reader = open(dir / "run");
  EXPECT_THAT(codes(reader.warnings()), IsEmpty());
  const auto trace = reader.samples("n2", "gpu0");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->t_ns.front(), 100 * kSecond);
  EXPECT_EQ(trace->t_ns.at(5), 104 * kSecond + kSecond / 2);
  EXPECT_EQ(trace->t_ns.back(), 109 * kSecond);
  const auto regions = reader.regions("n2");
  ASSERT_TRUE(regions && regions->size() == 1);
  EXPECT_EQ(regions->front().begin, mono_ns(100 * kSecond));
  EXPECT_EQ(regions->front().end, mono_ns(109 * kSecond));
  EXPECT_EQ(reader.events("n2")->at(0).t, mono_ns(100 * kSecond));
  EXPECT_EQ(reader.part("n2").idle_before->end, mono_ns(104 * kSecond + kSecond / 2));
  EXPECT_EQ(reader.part("n2").ranks.at(0).end, mono_ns(109 * kSecond));
  EXPECT_EQ(reader.manifest().begin, mono_ns(100 * kSecond));
  EXPECT_EQ(reader.manifest().end, mono_ns(110 * kSecond));
  EXPECT_EQ(reader.manifest().state, "complete");
  EXPECT_EQ(reader.manifest().exit_code, 0);
  EXPECT_GE(reader.clock("n2").error_ns(100 * kSecond), 5000);
  EXPECT_TRUE(reader.clock("n1").same());
}

TEST(Parts, TheFirstRankThatFailsGivesTheExitCode) {
  const TempDir dir;
  const auto identity = run_of("k");
  Manifest one = part_of("n1", "a"), two = part_of("n2", "b");
  one.ranks = {{0, 1, "n1", 0, {}, {}, {}}, {3, 1, "n1", 7, {}, {}, {}}};
  two.ranks = {{2, 1, "n2", 137, 9, {}, {}}, {1, 1, "n2", {}, {}, {}, {}}};
  two.clock = ClockLink{"n1", ClockLink::Method::same, {}};
  write_part(dir / "run", one, 0, 10, identity);
  write_part(dir / "run", two, 0, 10, identity);
  const auto reader = open(dir / "run");
  EXPECT_EQ(reader.manifest().exit_code, 137);
  EXPECT_EQ(reader.manifest().signal, 9);
  ASSERT_EQ(reader.manifest().ranks.size(), 4U);
  EXPECT_EQ(reader.manifest().ranks[1].node, "n2");
}

TEST(Parts, AnEndThatNobodyToldIsNotASuccess) {
  const TempDir dir;
  Manifest one = part_of("n1", "a");
  one.ranks = {{0, 1, "n1", 0, {}, {}, {}}, {1, 1, "n1", {}, {}, {}, {}}};
  write_part(dir / "run", one, 0, 10, run_of("k"));
  EXPECT_EQ(open(dir / "run").manifest().exit_code, std::nullopt);
}

TEST(Parts, MissingNodesAndRanksAreNamed) {
  const TempDir dir;
  auto identity = run_of("k", {"n1", "n2", "n3"});
  identity.parts->ranks = 3;
  Manifest one = part_of("n1", "a");
  one.place->aliases = {"n2"};  // two slurmd on one host
  write_part(dir / "run", one, 0, 10, identity, 0);
  const auto reader = open(dir / "run");
  EXPECT_EQ(reader.manifest().state, "incomplete");
  EXPECT_THAT(reader.manifest().parts->missing, ElementsAre("n3"));
  EXPECT_THAT(codes(reader.warnings()), ElementsAre("node-missing", "ranks-missing"));
  EXPECT_THAT(reader.warnings()[0].message, HasSubstr("nothing was recorded on n3"));
  EXPECT_THAT(reader.warnings()[0].remedy, HasSubstr("ergometer merge"));
  EXPECT_THAT(reader.warnings()[1].message, HasSubstr("the ranks 1, 2"));
}

TEST(Parts, WhereOnlyTheirNumberIsKnownItIsTold) {
  const TempDir dir;
  auto identity = run_of("ompi-1");
  identity.parts->nodes = 3;
  write_part(dir / "run", part_of("n1", "a"), 0, 10, identity);
  EXPECT_THAT(open(dir / "run").manifest().parts->missing, ElementsAre("2 of 3 nodes"));
}

TEST(Parts, APartThatGoesOnLeavesTheRunOpen) {
  const TempDir dir;
  const auto identity = run_of("k", {"n1", "n2"});
  write_part(dir / "run", part_of("n1", "a"), 0, 10, identity);
  Manifest late = part_of("n2", "b");
  late.clock = ClockLink{"n1", ClockLink::Method::same, {}};
  late.begin = mono_ns(5 * kSecond);
  ASSERT_TRUE(RunWriter::join(dir / "run", identity, late));
  // About to be claimed by a third machine.
  std::filesystem::create_directories(dir / "run/nodes/.part-n3-1-1/samples");
  const auto reader = open(dir / "run");
  EXPECT_EQ(reader.nodes().size(), 2U);
  EXPECT_EQ(reader.manifest().state, "running");
  EXPECT_EQ(reader.manifest().begin, mono_ns(0));
  EXPECT_EQ(reader.manifest().end, std::nullopt);
  EXPECT_THAT(codes(reader.warnings()), ::testing::Contains("part-not-complete"));
}

TEST(Parts, ADamagedPartKeepsItsReadings) {
  const TempDir dir;
  const auto identity = run_of("k", {"n1", "n2"});
  write_part(dir / "run", part_of("n1", "a"), 0, 10, identity);
  write_part(dir / "run", part_of("n2", "b"), 0, 10, identity);
  dir.write("run/nodes/n2/part.json", "{\"schema\":\"ergom");
  const auto reader = open(dir / "run");
  EXPECT_THAT(codes(reader.warnings()),
              ::testing::IsSupersetOf({"part-damaged", "clock-unknown", "part-not-complete"}));
  EXPECT_THAT(reader.warnings()[0].message, HasSubstr("nodes/n2/part.json is damaged or cut"));
  EXPECT_EQ(reader.samples("n2", "gpu0")->rows(), 11U);
}

TEST(Parts, OneMachineIsTakenOnce) {
  const TempDir dir;
  const auto identity = run_of("k", {"n1", "n2"});
  write_part(dir / "run", part_of("n1", "a"), 0, 10, identity);
  // The same machine under another name, as a merge of two folders can bring.
  write_part(dir / "other", part_of("n2", "a"), 2, 5, identity);
  std::filesystem::rename(dir / "other/nodes/n2", dir / "run/nodes/n2");
  // And once more, later: that is another measurement.
  write_part(dir / "third", part_of("n3", "a"), 20, 25, identity);
  std::filesystem::rename(dir / "third/nodes/n3", dir / "run/nodes/n3");
  const auto reader = open(dir / "run");
  std::vector<std::string> names;
  for (const auto& node : reader.nodes()) names.push_back(node.name);
  EXPECT_THAT(names, ElementsAre("n1", "n3"));
  EXPECT_THAT(codes(reader.warnings()), ElementsAre("machine-twice"));
  EXPECT_EQ(reader.manifest().state, "complete");
}

TEST(Parts, WithoutAnOffsetTheWallClocksTell) {
  const TempDir dir;
  const auto identity = run_of("merged", {"n1", "n2"});
  Manifest one = part_of("n1", "a"), two = part_of("n2", "b");
  one.clocks = {{mono_ns(0), wall_ns(1000 * kSecond), Nanos(3000)}};
  two.clocks = {{mono_ns(500 * kSecond), wall_ns(1002 * kSecond), Nanos(4000)}};
  write_part(dir / "run", one, 0, 10, identity);
  write_part(dir / "run", two, 500, 505, identity);
  const auto reader = open(dir / "run");
  EXPECT_EQ(reader.samples("n2", "gpu0")->t_ns.front(), 2 * kSecond);
  EXPECT_EQ(reader.clock("n2").error_ns(2 * kSecond), 7000);
  // Nobody disciplines n2's clock.
  two.clocks[0].error.reset();
  const auto loose = link_of({"n2", two}, "n1", nullptr);
  EXPECT_FALSE(loose);
  const RawPart there{"n1", one};
  EXPECT_EQ(link_of({"n2", two}, "n1", &there)->offsets.at(0).error, kUnknownWallError + Nanos(3000));
}

TEST(Parts, AReferenceMayBeCalledByAnAlias) {
  const TempDir dir;
  const auto identity = run_of("k");
  Manifest one = part_of("n1", "a"), two = part_of("n2", "b");
  one.place->aliases = {"n3"};
  two.clock = ClockLink{"n3", ClockLink::Method::exchange, {{mono_ns(0), Nanos(kSecond), Nanos(5)}}};
  write_part(dir / "run", one, 0, 10, identity);
  write_part(dir / "run", two, 0, 10, identity);
  const auto reader = open(dir / "run");
  EXPECT_THAT(codes(reader.warnings()), IsEmpty());
  EXPECT_EQ(reader.samples("n2", "gpu0")->t_ns.front(), kSecond);
  EXPECT_EQ(reader.samples("n1", "gpu0")->t_ns.front(), 0);
}

TEST(Parts, ClocksThatAreHoursApartAreTold) {
  const TempDir dir;
  const auto identity = run_of("merged");
  Manifest one = part_of("n1", "a"), two = part_of("n2", "b");
  one.clocks = {{mono_ns(0), wall_ns(1000 * kSecond), Nanos(3000)}};
  two.clocks = {{mono_ns(0), wall_ns(9000 * kSecond), Nanos(3000)}};
  write_part(dir / "run", one, 0, 10, identity);
  write_part(dir / "run", two, 0, 10, identity);
  const auto reader = open(dir / "run");
  ASSERT_THAT(codes(reader.warnings()), ElementsAre("clocks-apart"));
  EXPECT_THAT(reader.warnings()[0].message, HasSubstr("did not run at the same time"));
}

TEST(Parts, WhereNothingTellsOfTheClocksTheCommandsBeganTogether) {
  const TempDir dir;
  const auto identity = run_of("k", {"n1", "n2"});
  write_part(dir / "run", part_of("n1", "a"), 0, 10, identity);
  write_part(dir / "run", part_of("n2", "b"), 7000, 7010, identity);
  const auto reader = open(dir / "run");
  EXPECT_THAT(codes(reader.warnings()), ElementsAre("clock-unknown"));
  EXPECT_EQ(reader.samples("n2", "gpu0")->t_ns.front(), 0);
  EXPECT_GE(reader.clock("n2").error_ns(0), 10 * kSecond);
}

TEST(Parts, TheSameWarningOfManyNodesIsSaidOnce) {
  const TempDir dir;
  const auto identity = run_of("k");
  for (int i = 0; i < 20; ++i) {
    Manifest part = part_of("n" + std::to_string(10 + i), "boot" + std::to_string(i));
    part.clock = ClockLink{"n10", ClockLink::Method::same, {}};
    part.warnings = {{"sensor-missing", "no rapl", "ask"}};
    write_part(dir / "run", part, 0, 2, identity);
  }
  const auto reader = open(dir / "run");
  ASSERT_EQ(reader.manifest().warnings.size(), 1U);
  EXPECT_EQ(reader.manifest().warnings[0].message, "no rapl (node n10, n11, n12, n13, n14, n15, n16, n17 and 12 more)");
}

TEST(ClockMap, OffsetsAreJoinedByLinesAndErrorsGrowBetweenThem) {
  const ClockMap map({{mono_ns(0), Nanos(1000), Nanos(10)}, {mono_ns(100 * kSecond), Nanos(2000), Nanos(30)}});
  EXPECT_EQ(map.to_reference(0), 1000);
  EXPECT_EQ(map.to_reference(50 * kSecond), 50 * kSecond + 1500);
  EXPECT_EQ(map.error_ns(1000), 10);
  // In the middle: the mean of both bounds, and 10 ppm of the 50 s to either of them.
  EXPECT_EQ(map.error_ns(50 * kSecond + 1500), 20 + 500'000);
  // Beyond the last one 100 ppm, and what the offsets were seen to drift.
  EXPECT_EQ(map.to_reference(110 * kSecond), 110 * kSecond + 2000);
  EXPECT_NEAR(static_cast<double>(map.error_ns(110 * kSecond + 2000)), 30 + 1e6 + 100, 2);
  std::vector<std::int64_t> times{-5, 0, 50 * kSecond, 110 * kSecond};
  map.move(times);
  EXPECT_THAT(times, ElementsAre(995, 1000, 50 * kSecond + 1500, 110 * kSecond + 2000));
}

TEST(ClockMap, AClockThatWasSlewedIsTrustedLess) {
  // 400 ppm over the second stretch: the straight lines may be as wrong as they differ.
  const ClockMap map({{mono_ns(0), Nanos(0), Nanos(10)},
                      {mono_ns(10 * kSecond), Nanos(0), Nanos(10)},
                      {mono_ns(20 * kSecond), Nanos(4'000'000), Nanos(10)}});
  EXPECT_EQ(map.error_ns(5 * kSecond), 10 + 2'000'000);
}

TEST(ClockMap, TimeNeverRunsBackwards) {
  const ClockMap map({{mono_ns(0), Nanos(0), Nanos(1)},
                      {mono_ns(kSecond), Nanos(-2 * kSecond), Nanos(1)},
                      {mono_ns(2 * kSecond), Nanos(0), Nanos(1)}});
  EXPECT_EQ(map.rejected(), 1U);
  EXPECT_EQ(map.to_reference(kSecond), kSecond);
}

TEST(ClockMap, AnIntervalsLengthIsKnownBetterThanItsPlace) {
  const ClockMap map({{mono_ns(0), Nanos(0), Nanos(1'000'000)}, {mono_ns(1000 * kSecond), Nanos(0), Nanos(1'000'000)}});
  // 2 ms over the 1000 s between the offsets, and 10 ppm: 12 us a second.
  EXPECT_NEAR(static_cast<double>(map.stretch_error_ns(100 * kSecond, 101 * kSecond)), 12'000, 10);
  EXPECT_EQ(map.stretch_error_ns(0, 1000 * kSecond), 2'000'000);
  EXPECT_EQ(ClockMap().stretch_error_ns(0, kSecond), 0);
}

}  // namespace
}  // namespace ergometer
