// Reading sample files: every kind of damage, and what people write by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "base/number.hpp"
#include "store/sample_file.hpp"
#include "store/zstd_frames.hpp"

namespace ergometer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Times = std::vector<std::int64_t>;

SensorInfo gpu_power() {
  SensorInfo info;
  info.name = "gpu0-power";
  info.own_time = true;
  Channel channel;
  channel.column = "power_w";
  channel.quantity = Quantity::power;
  channel.note = "as described";
  info.channels = {channel};
  return info;
}

std::string frame(std::string_view text) {
  FrameCompressor compressor;
  const auto out = compressor.compress(text);
  EXPECT_TRUE(out.has_value());
  return std::string(*out);
}

struct Read {
  Result<Trace> trace;
  std::vector<Warning> warnings;
};

Read read(std::string_view content, bool compressed, const SensorInfo* info = nullptr,
          const std::string& sensor = "gpu0-power") {
  Read out{fail(ErrorCode::internal, ""), {}};
  out.trace = parse_samples(content, compressed, sensor, info, "FILE", out.warnings);
  return out;
}

TEST(Samples, PlainTextAsPeopleWriteIt) {
  const auto out =
      read("\xEF\xBB\xBFt_ns,power_w,energy_j\r\n10,1.5,\r\n\r\n20,,7\r\n30, 2.25 ,\"8\"\r\n40,+1e3,-0.5", false);
  ASSERT_TRUE(out.trace) << out.trace.error().message;
  EXPECT_THAT(out.warnings, IsEmpty());
  EXPECT_THAT(out.trace->t_ns, ElementsAre(10, 20, 30, 40));
  EXPECT_TRUE(out.trace->info.own_time);
  const auto& power = out.trace->columns[0];
  EXPECT_EQ(power[0], 1.5);
  EXPECT_EQ(power[1], std::nullopt);
  EXPECT_EQ(power[2], 2.25);
  EXPECT_EQ(power[3], 1000.0);
  const auto& energy = out.trace->columns[1];
  EXPECT_EQ(energy[0], std::nullopt);
  EXPECT_EQ(energy[1], 7.0);
  EXPECT_EQ(energy[2], 8.0);
  EXPECT_EQ(energy[3], -0.5);
}

TEST(Samples, ReadWidth) {
  const auto out = read("t_ns,read_ns,power_w\n10,3,1\n20,,2\n", false);
  ASSERT_TRUE(out.trace);
  EXPECT_FALSE(out.trace->info.own_time);
  EXPECT_THAT(out.trace->read_ns, ElementsAre(3, 0));
}

TEST(Samples, BadRowsAreSkippedCountedAndNamed) {
  const auto out =
      read("t_ns,power_w\n10,1\n20\n30,x\nnoon,3\n40,4,5\n50,1,\n60,6\n70,[N/A]\n99999999999999999999,1\n", false);
  ASSERT_TRUE(out.trace);
  EXPECT_THAT(out.trace->t_ns, ElementsAre(10, 60));
  ASSERT_THAT(out.warnings, SizeIs(1));
  EXPECT_EQ(out.warnings[0].code, "rows-skipped");
  EXPECT_THAT(out.warnings[0].message, HasSubstr("FILE:3:"));
  EXPECT_THAT(out.warnings[0].message, HasSubstr("7 such rows"));
}

TEST(Samples, ValuesThatAreNotFiniteAreMissing) {
  const auto out = read("t_ns,power_w\n10,nan\n20,-inf\n30,1e999\n40,4\n50,NaN\n", false);
  ASSERT_TRUE(out.trace);
  ASSERT_EQ(out.trace->rows(), 5U);
  EXPECT_EQ(out.trace->columns[0][0], std::nullopt);
  EXPECT_EQ(out.trace->columns[0][2], std::nullopt);
  EXPECT_EQ(out.trace->columns[0][3], 4.0);
  ASSERT_THAT(out.warnings, SizeIs(1));
  EXPECT_THAT(out.warnings[0].message, HasSubstr("FILE:2: nan or inf taken as missing, 4 times"));
}

TEST(Samples, RowsOutOfOrderAreSortedAndRepeatedTimesLeftOut) {
  const auto out = read("t_ns,read_ns,power_w\n10,1,1\n30,3,3\n20,2,\n30,9,9\n40,4,4\n", false);
  ASSERT_TRUE(out.trace);
  EXPECT_THAT(out.trace->t_ns, ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(out.trace->read_ns, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(out.trace->columns[0][1], std::nullopt);
  EXPECT_EQ(out.trace->columns[0][2], 3.0);
  EXPECT_EQ(out.trace->columns[0].size(), 4U);
  ASSERT_THAT(out.warnings, SizeIs(1));
  EXPECT_EQ(out.warnings[0].code, "rows-out-of-order");
}

TEST(Samples, WithoutHeader) {
  EXPECT_FALSE(read("", false).trace);
  const auto foreign = read("timestamp, power.draw [W]\n1, 2\n", false);
  ASSERT_FALSE(foreign.trace);
  EXPECT_EQ(foreign.trace.error().code, ErrorCode::corrupt);
  EXPECT_THAT(foreign.trace.error().message, HasSubstr("FILE has no header"));
  // What node.json describes stands in for a header that was lost.
  const auto info = gpu_power();
  const auto known = read("10,1\n20,2\n", false, &info);
  ASSERT_TRUE(known.trace);
  EXPECT_THAT(known.trace->t_ns, ElementsAre(10, 20));
  EXPECT_EQ(known.trace->info.channels[0].note, "as described");
}

TEST(Samples, ColumnsFollowTheFile) {
  auto info = gpu_power();
  info.channels.push_back(info.channels[0]);
  info.channels[1].column = "limit_w";
  const auto out = read("t_ns,energy_j,power_w\n1,2,3\n", false, &info);
  ASSERT_TRUE(out.trace);
  ASSERT_THAT(out.trace->info.channels, SizeIs(2));
  EXPECT_EQ(out.trace->info.channels[0].column, "energy_j");
  EXPECT_EQ(out.trace->info.channels[0].behaviour, Behaviour::counter);
  EXPECT_EQ(out.trace->info.channels[1].note, "as described");
  ASSERT_THAT(out.warnings, SizeIs(1));
  EXPECT_THAT(out.warnings[0].message, HasSubstr("no column limit_w"));
}

TEST(Samples, InferredChannels) {
  const auto samples = read("t_ns,power_w\n1,2\n", false, nullptr, "gpu1-samples");
  ASSERT_TRUE(samples.trace);
  const Channel& power = samples.trace->info.channels[0];
  EXPECT_EQ(power.domain, "gpu/1");
  EXPECT_EQ(power.scope, Scope::gpu);
  EXPECT_EQ(power.method, Method::samples);
  EXPECT_EQ(power.unit, "W");
  const auto other = read("t_ns,power_w,energy_j,used_bytes,read_bytes_total,sm_active_ratio,average_w,tokens\n", false,
                          nullptr, "wall-meter");
  ASSERT_TRUE(other.trace);
  const auto& c = other.trace->info.channels;
  EXPECT_EQ(c[0].domain, "wall-meter");
  EXPECT_EQ(c[0].scope, Scope::node);
  EXPECT_EQ(c[0].method, Method::integral);
  EXPECT_EQ(c[1].behaviour, Behaviour::counter);
  EXPECT_EQ(c[1].method, Method::counter);
  EXPECT_EQ(c[2].quantity, Quantity::bytes);
  EXPECT_EQ(c[2].method, std::nullopt);
  EXPECT_EQ(c[3].behaviour, Behaviour::counter);
  EXPECT_EQ(c[4].unit, "1");
  EXPECT_EQ(c[5].method, Method::average);
  EXPECT_EQ(c[6].quantity, Quantity::count);
  EXPECT_EQ(read("t_ns,power_w\n", false, nullptr, "package0").trace->info.channels[0].domain, "package/0");
  EXPECT_EQ(read("t_ns,power_w\n", false, nullptr, "gpumeter").trace->info.channels[0].domain, "gpumeter");
}

// A small run's file: frames of three rows each, and where each ends.
struct Frames {
  std::string content;
  std::vector<std::size_t> ends;
  std::vector<Times> times;

  explicit Frames(int count) {
    for (int i = 0; i < count; ++i) {
      std::string text = i == 0 ? "t_ns,power_w\n" : "";
      Times t;
      for (int k = 0; k < 3; ++k) {
        t.push_back(1000 * (i + 1) + k);
        append_int(text, t.back());
        text += ",697." + std::to_string(k) + "25\n";
      }
      content += frame(text);
      ends.push_back(content.size());
      times.push_back(t);
    }
  }
  [[nodiscard]] Times without(int missing) const {
    Times out;
    for (int i = 0; i < static_cast<int>(times.size()); ++i)
      if (i != missing) out.insert(out.end(), times[i].begin(), times[i].end());
    return out;
  }
};

TEST(Samples, CutAtEveryByteKeepsTheWholeFramesBeforeIt) {
  const Frames file(6);
  const auto info = gpu_power();
  for (std::size_t length = 0; length < file.content.size(); ++length) {
    Times expected;
    bool on_edge = length == 0;
    for (std::size_t i = 0; i < file.ends.size(); ++i) {
      if (file.ends[i] <= length) expected.insert(expected.end(), file.times[i].begin(), file.times[i].end());
      on_edge = on_edge || file.ends[i] == length;
    }
    const auto out = read(std::string_view(file.content).substr(0, length), true, &info);
    ASSERT_TRUE(out.trace) << length;
    EXPECT_EQ(out.trace->t_ns, expected) << length;
    EXPECT_EQ(out.warnings.size(), on_edge ? 0U : 1U) << length;
    if (!out.warnings.empty()) {
      EXPECT_EQ(out.warnings[0].code, "samples-cut") << length;
    }
  }
}

TEST(Samples, ADamagedByteCostsItsFrameOnly) {
  const Frames file(4);
  const auto info = gpu_power();
  std::size_t undetected = 0;
  for (std::size_t at = 0; at < file.content.size(); ++at) {
    std::string damaged = file.content;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5A);
    int hit = 0;
    while (file.ends[static_cast<std::size_t>(hit)] <= at) ++hit;
    const auto out = read(damaged, true, &info);
    ASSERT_TRUE(out.trace) << at;
    if (out.warnings.empty()) {
      ++undetected;
      continue;
    }
    EXPECT_EQ(out.trace->t_ns, file.without(hit)) << at;
    EXPECT_THAT(out.warnings[0].message, HasSubstr("FILE")) << at;
  }
  EXPECT_EQ(undetected, 0U);
}

TEST(Samples, GarbageBetweenFramesIsSkippedAndCounted) {
  const Frames file(3);
  std::string content = file.content;
  content.insert(file.ends[0], "garbage of 19 bytes");
  content.insert(0, std::string(5, '\0'));
  const auto out = read(content, true);
  ASSERT_TRUE(out.trace);
  EXPECT_EQ(out.trace->t_ns, file.without(-1));
  ASSERT_THAT(out.warnings, SizeIs(1));
  EXPECT_THAT(out.warnings[0].message, HasSubstr("2 damaged places, the first at byte 0; 24 of"));
}

TEST(Samples, LinesMayCrossFrames) {
  const auto out = read(frame("t_ns,pow") + frame("er_w\n10,1.") + frame("25\n20,2") + frame("\n"), true);
  ASSERT_TRUE(out.trace);
  EXPECT_THAT(out.trace->t_ns, ElementsAre(10, 20));
  EXPECT_EQ(out.trace->columns[0][0], 1.25);
  EXPECT_EQ(out.trace->columns[0][1], 2.0);
}

TEST(Samples, ALargeFrameIsReadInPiecesAndForgottenIfItsChecksumFails) {
  std::string text = "t_ns,power_w\n";
  constexpr int kRows = 600000;
  for (int i = 0; i < kRows; ++i) {
    append_int(text, i);
    text += ",12.5\n";
  }
  ASSERT_GT(text.size(), 4U << 20);
  std::string large = frame(text);
  const std::string small = frame("700000,1\n700001,2\n");
  const auto good = read(large + small, true);
  ASSERT_TRUE(good.trace);
  EXPECT_EQ(good.trace->rows(), kRows + 2U);
  large.back() = static_cast<char>(large.back() ^ 1);
  const auto info = gpu_power();
  const auto bad = read(large + small, true, &info);
  ASSERT_TRUE(bad.trace);
  EXPECT_THAT(bad.trace->t_ns, ElementsAre(700000, 700001));
  EXPECT_EQ(bad.trace->columns[0].size(), 2U);
  ASSERT_THAT(bad.warnings, SizeIs(1));
}

TEST(Samples, ALineWithoutEndCostsOneRow) {
  const std::string endless(3 << 20, '7');
  const auto out = read("t_ns,power_w\n10,1\n" + endless + "\n20,2\n", false);
  ASSERT_TRUE(out.trace);
  EXPECT_THAT(out.trace->t_ns, ElementsAre(10, 20));
  EXPECT_THAT(out.warnings, SizeIs(1));
}

TEST(Samples, NumbersAreReadExactly) {
  std::mt19937_64 random(1);
  std::vector<double> values{0.0,
                             0.1,
                             1.0 / 3,
                             5e-324,
                             1.7976931348623157e308,
                             9007199254740991.0,
                             9007199254740993.0,
                             123456789012345.678,
                             0.000001,
                             1e22,
                             1e23,
                             123456789.123456789,
                             4.35,
                             0.3,
                             2.2250738585072014e-308};
  for (int i = 0; i < 50000; ++i) {
    double any = 0;
    const std::uint64_t bits = random();
    std::memcpy(&any, &bits, sizeof any);
    if (std::isfinite(any)) values.push_back(any);
    values.push_back(static_cast<double>(random() % 1000000000) / 1000);
    values.push_back(static_cast<double>(random() % 100000000000000) / 1e6);
  }
  std::string text = "t_ns,power_w\n";
  for (std::size_t i = 0; i < values.size(); ++i) {
    append_int(text, static_cast<std::int64_t>(i));
    text += ',';
    append_double(text, values[i]);
    text += '\n';
  }
  const auto out = read(text, false);
  ASSERT_TRUE(out.trace);
  ASSERT_EQ(out.trace->rows(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(out.trace->columns[0][i], values[i]) << i;
  // More digits than a double holds, as other programs write them.
  const auto digits = read(
      "t_ns,power_w\n1,0.1000000000000000055511151231257827\n2,12345678901234567890\n3,00000000000000000000000001.5\n",
      false);
  EXPECT_EQ(digits.trace->columns[0][0], 0.1);
  EXPECT_EQ(digits.trace->columns[0][1], 12345678901234567890.0);
  EXPECT_EQ(digits.trace->columns[0][2], 1.5);
}

TEST(Samples, LastTime) {
  const Frames file(3);
  EXPECT_EQ(last_sample_ns(file.content, true), 3002);
  EXPECT_EQ(last_sample_ns(file.content.substr(0, file.content.size() - 1), true), 2002);
  EXPECT_EQ(last_sample_ns("t_ns,power_w\n10,1\n20,2\r\n", false), 20);
  EXPECT_EQ(last_sample_ns("t_ns,power_w\n", false), std::nullopt);
  EXPECT_EQ(last_sample_ns("", true), std::nullopt);
}

}  // namespace
}  // namespace ergometer
