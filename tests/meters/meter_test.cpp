// The meter backend: files that grow, and commands.
#include "device/meter/meter.hpp"

#include <sys/wait.h>

#include <filesystem>
#include <thread>

#include "device/fake_tree.hpp"
#include "device/meter/format.hpp"

namespace ergometer::test {
namespace {

using namespace std::chrono_literals;
using namespace meter;

constexpr std::int64_t kEpoch_ns = 1'769'860'800'000'000'000;  // 2026-01-31T12:00:00Z
constexpr std::int64_t kSecond = 1'000'000'000;

struct Bench : FakeTree {
  Bench() {
    clock->mono = 100 * kSecond;
    clock->offset = kEpoch_ns - clock->mono;
    options.only = {"meter=" + file()};
    options.environment = {{"PATH", "/usr/bin:/bin"}};
  }
  std::string file() const { return (*this / "meter.csv").string(); }
  void append(const std::string& text) const { std::ofstream(file(), std::ios::app | std::ios::binary) << text; }
  void pass(Nanos time) const { clock->mono += time.count(); }
  Discovery found() const {
    Discovery out;
    discover_meter(host(), options, out);
    return out;
  }
  std::shared_ptr<Sensor> sensor(const std::string& name = "meter") {
    keep = found();
    return sensor_named(keep, name);
  }
  Discovery keep;
  DiscoverOptions options;
};

std::string reason(const Discovery& found) {
  EXPECT_TRUE(found.sensors.empty());
  EXPECT_EQ(found.warnings.size(), 1u);
  return found.node.absences.empty() ? "" : found.node.absences[0].reason + " | " + found.node.absences[0].remedy;
}

TEST(Meter, RowsAtTheMetersOwnTimeAsTheyAreWritten) {
  Bench bench;
  bench.append("time_s,power_w\n");
  const auto sensor = bench.sensor();
  ASSERT_TRUE(sensor);
  EXPECT_TRUE(sensor->info().own_time);
  EXPECT_EQ(sensor->info().channels[0].domain, "node");
  Readings out;
  ASSERT_TRUE(sensor->read(out));
  EXPECT_TRUE(out.rows.empty());
  bench.append("1769860800.25,300.5\n1769860801.25,30");
  bench.pass(2s);
  ASSERT_TRUE(sensor->read(out));
  ASSERT_EQ(out.rows.size(), 1u) << "half a line is none yet";
  EXPECT_NEAR(seconds(out.rows[0].t - mono_ns(100 * kSecond)), 0.25, 1e-6);
  EXPECT_EQ(out.rows[0].values[0], 300.5);
  bench.append("1\n");
  ASSERT_TRUE(sensor->read(out));
  ASSERT_EQ(out.rows.size(), 2u);
  EXPECT_EQ(out.rows[1].values[0], 301.0);
  EXPECT_TRUE(out.events.empty());
}

TEST(Meter, ClocksAndUnits) {
  struct Case {
    const char *header, *line;
    double watts;
    std::int64_t stamp_ns;
  };
  for (const auto& c : {Case{"timestamp_ms,Power (mW)", "1769860800500,312500", 312.5, kEpoch_ns + kSecond / 2},
                        Case{"time,power_kw", "1769860800,0.4", 400, kEpoch_ns},
                        Case{"Date;Power [W]", "2026-01-31T13:00:00.5+01:00;312,5", 312.5, kEpoch_ns + kSecond / 2},
                        Case{"\"time\",\"watts\"", "\"2026-01-31 12:00:00Z\",\"7\"", 7, kEpoch_ns},
                        Case{"time,power_w", "1769860800500,5", 5, kEpoch_ns + kSecond / 2},
                        Case{"\xEF\xBB\xBFtime,power_w", "1769860800,5", 5, kEpoch_ns},
                        Case{"t_ns,node_power_w", "123456789012345678,5", 5, 123456789012345678},
                        Case{"monotonic_s\tW", "12.5\t250", 250, 12'500'000'000},
                        Case{"volts,unix,power_w,pf", "230,1769860800000000,250,0.9", 250, kEpoch_ns}}) {
    const auto format = format_of(c.header, {});
    ASSERT_TRUE(format) << c.header << ": " << format.error().message;
    const auto line = parse_line(c.line, *format);
    ASSERT_TRUE(line) << c.line;
    EXPECT_EQ(line->power_w, c.watts) << c.line;
    ASSERT_TRUE(line->stamp_ns);
    EXPECT_NEAR(static_cast<double>(*line->stamp_ns - c.stamp_ns), 0, 1000) << c.line;
  }
  EXPECT_EQ(format_of("t_ns,power_w", {})->time, Time::monotonic);
  EXPECT_EQ(parse_line("123456789012345678,5", *format_of("t_ns,power_w", {}))->stamp_ns, 123456789012345678);
  EXPECT_EQ(format_of("312.5", {"", "W", ""})->time, Time::arrival);
  EXPECT_FALSE(format_of("1769860800,312", {"", "W", ""})->has_header);
  EXPECT_FALSE(format_of("1769860800,312,7", {"", "W", ""})) << "nobody says which of three is the power";
}

TEST(Meter, UnknownOrContradictingUnitsAreRefused) {
  Bench bench;
  bench.append("time_s,power\n");
  EXPECT_NE(reason(bench.found()).find("unit"), std::string::npos);
  bench.options.meter_settings["meter.unit"] = "mW";
  EXPECT_EQ(bench.found().sensors.size(), 1u);
  bench.write("meter.csv", "time_s,power_w\n");
  EXPECT_NE(reason(bench.found()).find("another unit"), std::string::npos);
  bench.options.meter_settings["meter.unit"] = "BTU/h";
  EXPECT_NE(reason(bench.found()).find("BTU/h"), std::string::npos);
  EXPECT_FALSE(format_of("time_s,power_MW", {})) << "megawatts are no milliwatts";
  bench.options.meter_settings = {{"meter.column", "outlet 2"}};
  EXPECT_NE(reason(bench.found()).find("outlet 2"), std::string::npos);
}

TEST(Meter, AnotherUnitThanSaidIsMissingAndTold) {
  Bench bench;
  bench.append("time_s,power_w\n");
  const auto sensor = bench.sensor();
  Readings out;
  ASSERT_TRUE(sensor->read(out));
  bench.append("1769860800,312500\n1769860801,0\n1769860802,\n1769860803,-4\n1769860804,312\n");
  bench.pass(5s);
  ASSERT_TRUE(sensor->read(out));
  ASSERT_EQ(out.rows.size(), 5u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out.rows[static_cast<std::size_t>(i)].values[0], std::nullopt) << i;
  EXPECT_EQ(out.rows[4].values[0], 312.0);
  EXPECT_EQ(count_events(out, "rejected"), 1u);
}

TEST(Meter, AnotherClockIsPlacedByArrival) {
  Bench bench;
  bench.append("time_s,power_w\n");
  const auto sensor = bench.sensor();
  Readings out;
  ASSERT_TRUE(sensor->read(out));
  // Its clock is an hour ahead; the second line is written half a second late.
  bench.pass(1s);
  bench.append("1769864401,300\n");
  ASSERT_TRUE(sensor->read(out));
  bench.pass(1500ms);
  bench.append("1769864402,310\n");
  ASSERT_TRUE(sensor->read(out));
  ASSERT_EQ(out.rows.size(), 2u);
  EXPECT_EQ(to_ns(out.rows[0].t), 101 * kSecond);
  EXPECT_NEAR(seconds(out.rows[1].t - out.rows[0].t), 1.0, 1e-6);
  EXPECT_EQ(count_events(out, "clock"), 1u);
}

TEST(Meter, AProgramThatWritesInBlocksIsNoOtherClock) {
  Bench bench;
  bench.append("time_s,power_w\n");
  const auto sensor = bench.sensor();
  Readings out;
  bench.pass(60s);
  std::string block;
  for (int i = 0; i < 60; ++i) block += fmt::format("{},{}\n", 1769860800 + i, 300 + i);
  bench.append(block);
  ASSERT_TRUE(sensor->read(out));
  ASSERT_EQ(out.rows.size(), 60u);
  EXPECT_EQ(to_ns(out.rows[0].t), 100 * kSecond);
  EXPECT_EQ(count_events(out, "clock"), 0u);
}

TEST(Meter, SilenceGapsAndTheSameValueForEver) {
  Bench bench;
  bench.append("time_s,power_w\n");
  const auto sensor = bench.sensor();
  Readings out;
  for (int i = 0; i < 30; ++i) {
    bench.pass(1s);
    ASSERT_TRUE(sensor->read(out));
  }
  EXPECT_EQ(count_events(out, "stuck"), 1u);
  for (int i = 31; i < 131; ++i) {
    bench.pass(1s);
    bench.append(fmt::format("{},300\n", 1769860800 + i));
    ASSERT_TRUE(sensor->read(out));
  }
  EXPECT_EQ(out.rows.size(), 100u) << "the gap stays a gap: no row is made up";
  EXPECT_EQ(count_events(out, "back"), 1u);
  EXPECT_EQ(count_events(out, "stuck"), 2u);
}

TEST(Meter, GarbageLinesLongLinesAndARotatedFile) {
  Bench bench;
  bench.append("time_s,power_w\n");
  const auto sensor = bench.sensor();
  Readings out;
  bench.append("\xff\xfe,\n,,,\nnonsense\n1769860800,300\n\n");
  ASSERT_TRUE(sensor->read(out));
  EXPECT_EQ(out.rows.size(), 1u);
  EXPECT_EQ(count_events(out, "rejected"), 1u);
  bench.write("next.csv", "watts,time_s\n310,1769860801\n");
  std::filesystem::rename(bench / "next.csv", bench.file());
  bench.pass(2s);
  ASSERT_TRUE(sensor->read(out));
  ASSERT_EQ(out.rows.size(), 2u);
  EXPECT_EQ(out.rows[1].values[0], 310.0);
  bench.append(std::string(10'000, 'x'));
  EXPECT_EQ(sensor->read(out).error().code, ErrorCode::corrupt);
  std::filesystem::remove(bench.file());
  EXPECT_EQ(sensor->read(out).error().code, ErrorCode::not_found);
}

TEST(Meter, AMissingFileHasARemedy) {
  Bench bench;
  EXPECT_NE(reason(bench.found()).find("meter.csv"), std::string::npos);
  bench.options.only = {"meter"};
  EXPECT_NE(reason(bench.found()).find("meter=FILE"), std::string::npos);
  bench.options.only = {"rapl"};
  bench.options.meter_settings["meter.file"] = bench.file();
  const auto found = bench.found();
  EXPECT_TRUE(found.sensors.empty() && found.node.absences.empty()) << "--sensors leaves it out";
}

TEST(Meter, ACommandThatPrintsAndEndsIsRunAgain) {
  Bench bench;
  bench.write("w", "300.5\n");
  bench.options.only = {"meter-command=cat " + (bench / "w").string()};
  const auto sensor = bench.sensor("meter-command");
  ASSERT_TRUE(sensor);
  Readings out;
  ASSERT_TRUE(sensor->read(out));
  // A new file in its place: the first command may still be reading the old one.
  bench.write("next", "290000 mW");
  std::filesystem::rename(bench / "next", bench / "w");
  const auto second = sensor->read(out);
  ASSERT_TRUE(second) << second.error().message;
  ASSERT_EQ(out.rows.size(), 2u);
  EXPECT_EQ(out.rows[0].values[0], 300.5);
  EXPECT_EQ(out.rows[1].values[0], 290.0);
}

TEST(Meter, ACommandThatGoesOnIsListenedTo) {
  Bench bench;
  bench.options.only = {"meter-command=echo 310; read line < " + (bench / "pipe").string() + "; echo $line; sleep 30"};
  ASSERT_EQ(::mkfifo((bench / "pipe").c_str(), 0600), 0);
  const auto sensor = bench.sensor("meter-command");
  ASSERT_TRUE(sensor);
  Readings out;
  ASSERT_TRUE(sensor->read(out));
  ASSERT_EQ(out.rows.size(), 1u);
  bench.write("pipe", "320\n");
  for (int i = 0; i < 10 && out.rows.size() < 2; ++i) ASSERT_TRUE(sensor->read(out));
  ASSERT_EQ(out.rows.size(), 2u);
  EXPECT_EQ(out.rows[1].values[0], 320.0);
}

TEST(Meter, CommandsThatFailPrintNonsenseOrNothing) {
  const auto error_of = [](const std::string& command, Nanos later = Nanos{0}) {
    Bench bench;
    bench.options.only = {"meter-command=" + command};
    const auto sensor = bench.sensor("meter-command");
    Readings out;
    auto read = sensor->read(out);
    if (later > Nanos{0}) {
      EXPECT_TRUE(read);
      bench.pass(later);
      read = sensor->read(out);
    }
    EXPECT_TRUE(out.rows.empty()) << command;
    return read ? "no error" : read.error().message;
  };
  EXPECT_NE(error_of("exit 3").find("ends with 3"), std::string::npos);
  EXPECT_NE(error_of("true").find("prints nothing"), std::string::npos);
  for (const auto* nonsense : {"watts", "0", "-5", "1e9", "NaN", "300 V", "12 34"})
    EXPECT_NE(error_of(std::string("echo ") + nonsense).find("no power"), std::string::npos) << nonsense;
  EXPECT_NE(error_of("sleep 20", 11s).find("printed nothing"), std::string::npos);
}

}  // namespace
}  // namespace ergometer::test
