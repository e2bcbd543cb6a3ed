// What calibration finds: of simulated sensors whose behaviour is known, and of the recorded H200 and A100.
#include "analysis/calibration.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "analysis/build_run.hpp"
#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "support/temp_dir.hpp"

namespace ergometer::test {
namespace {

// A load that is switched at random, 40 s from second 1 on.
Reference random_load(unsigned seed) {
  std::mt19937 random(seed);
  Reference load;
  double t = 1, level = 0;
  while (t < 41) {
    load.step(static_cast<std::int64_t>(t * 1e9), level);
    level = 1 - level;
    t += std::uniform_real_distribution<double>(0.05, 0.8)(random);
  }
  load.step(static_cast<std::int64_t>(41e9), 0);
  return load;
}

double level_at(const Reference& load, double s) {
  const auto ns = static_cast<std::int64_t>(s * 1e9);
  const auto next = std::upper_bound(load.t_ns.begin(), load.t_ns.end(), ns) - load.t_ns.begin();
  return next == 0 ? 0 : load.values[static_cast<std::size_t>(next - 1)];
}

// Mean power of [to - window, to] of a device that draws 100 W, and 500 W under load.
double power_over(const Reference& load, double to, double window) {
  constexpr int kParts = 400;
  if (window == 0) return 100 + 400 * level_at(load, to);
  double sum = 0;
  for (int i = 0; i < kParts; ++i) sum += level_at(load, to - window * (i + 0.5) / kParts);
  return 100 + 400 * sum / kParts;
}

struct Simulated {
  double period_s, window_s, delay_s, poll_s, noise_w = 1;
};

// A gauge of that behaviour, polled; readings of whole deciwatts.
Trace poll(const Reference& load, const Simulated& device) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, device.noise_w);
  Readings readings;
  double next_update = 0.0137, shown = 100;
  for (double t = 0.5; t < 42; t += device.poll_s) {
    for (; next_update <= t; next_update += device.period_s) {
      const double level = power_over(load, next_update - device.delay_s, device.window_s) + noise(random);
      shown = std::round(level * 10) / 10;
    }
    readings.emplace_back(t, shown);
  }
  return trace("gpu0", power("gpu/0", Scope::gpu, Method::integral), readings, device.poll_s);
}

TEST(Calibration, FindsPeriodWindowAndDelayOfAGauge) {
  const Reference load = random_load(1);
  for (const Simulated& device : {Simulated{0.1, 1.0, 0, 0.005}, Simulated{0.1, 0.025, 0.03, 0.005},
                                  Simulated{0.02, 0.02, 0.05, 0.002}, Simulated{0.25, 0.5, 0.2, 0.01}}) {
    const auto found = calibrate_channel(poll(load, device), 0, load);
    ASSERT_TRUE(found.period_s && found.window_s && found.delay_s) << device.period_s;
    EXPECT_NEAR(*found.period_s, device.period_s, 0.02 * device.period_s + 1e-4);
    EXPECT_FALSE(found.period_is_bound);
    EXPECT_NEAR(found.window_s->value, device.window_s, 0.04 * device.window_s + 0.004);
    EXPECT_NEAR(found.delay_s->value, device.delay_s, 0.004 + 0.08 * device.period_s);
    EXPECT_NEAR(*found.low_w, 100, 8);
    EXPECT_NEAR(*found.high_w, 500, 8);
    EXPECT_NEAR(*found.resolution, 0.1, 1e-6);
    EXPECT_NEAR(*found.sampled_share, std::min(1.0, device.window_s / device.period_s), 0.06);
    EXPECT_GT(found.explained, 0.98);
  }
}

TEST(Calibration, FindsPeriodAndDelayOfACounter) {
  const Reference load = random_load(2);
  Readings readings;
  double energy = 0, updated = 0;
  for (double t = 0.5; t < 42; t += 0.001) {
    energy += 0.001 * power_over(load, t - 0.04, 0);
    if (std::fmod(t, 0.1) < 0.001) updated = std::round(energy * 1000) / 1000;
    if (std::fmod(t, 0.01) < 0.001) readings.emplace_back(t, updated);
  }
  const auto found = calibrate_channel(trace("gpu0-energy", counter("gpu/0", Scope::gpu), readings, 0.01), 0, load);
  ASSERT_TRUE(found.period_s && found.delay_s);
  EXPECT_NEAR(*found.period_s, 0.1, 0.002);
  EXPECT_FALSE(found.window_s);
  EXPECT_NEAR(found.delay_s->value, 0.04, 0.012);
  EXPECT_NEAR(*found.high_w, 500, 8);
  EXPECT_NEAR(*found.energy_j, 40 * 100 + 400 * 20, 0.1 * 12000);
}

TEST(Calibration, AChannelThatChangesAtEachReadHasABoundOnly) {
  const Reference load = random_load(3);
  const auto found = calibrate_channel(poll(load, {0.001, 0, 0, 0.01}), 0, load);
  ASSERT_TRUE(found.period_s);
  EXPECT_TRUE(found.period_is_bound);
  EXPECT_NEAR(*found.period_s, 0.01, 1e-6);
  EXPECT_FALSE(found.sampled_share);
}

TEST(Calibration, WithoutLoadNothingIsInvented) {
  const Reference load = random_load(4);
  Readings still, noise;
  std::mt19937 random(1);
  for (double t = 0.5; t < 42; t += 0.01) {
    still.emplace_back(t, 55.0);
    noise.emplace_back(t, std::normal_distribution<double>(55, 2)(random));
  }
  const auto of = [&](const Readings& readings) {
    return calibrate_channel(trace("gpu0", power("gpu/0", Scope::gpu), readings, 0.01), 0, load);
  };
  const auto a = of(still), b = of(noise);
  EXPECT_FALSE(a.period_s || a.window_s || a.delay_s || a.resolution || a.low_w);
  EXPECT_FALSE(b.window_s || b.delay_s || b.low_w || b.sampled_share);
  EXPECT_NEAR(*a.energy_j, 55 * 40, 1);
  EXPECT_FALSE(calibrate_channel(trace("gpu0", power("gpu/0", Scope::gpu), {}, 0.01), 0, load).energy_j);
}

TEST(Calibration, AMeterGivesGainAndOffsetWithIntervals) {
  const Reference load = random_load(5);
  Reference meter;
  meter.in_watts = true;
  for (double t = 1; t < 41; t += 0.002) {
    meter.t_ns.push_back(static_cast<std::int64_t>(t * 1e9));
    meter.values.push_back(1.04 * power_over(load, t, 0) + 6);
  }
  const auto found = calibrate_channel(poll(load, {0.02, 0.02, 0, 0.005}), 0, meter);
  ASSERT_TRUE(found.gain && found.offset_w);
  EXPECT_NEAR(found.gain->value, 1.04, 0.01);
  EXPECT_NEAR(found.offset_w->value, 6, 3);
  EXPECT_NEAR(found.gain->value, 1.04, 2 * found.gain->uncertainty + 1e-3);
  EXPECT_GT(found.gain->uncertainty, 0);
  EXPECT_LT(found.gain->uncertainty, 0.02);
  EXPECT_FALSE(found.low_w);
}

std::vector<std::vector<std::string>> records(const std::filesystem::path& file) {
  std::vector<std::vector<std::string>> out;
  const auto text = read_file(file, 64 << 20);
  for (std::size_t pos = 0; text && pos < text->size();)
    if (auto record = read_csv_record(*text, pos); record && record->size() > 1) out.push_back(std::move(*record));
  return out;
}

// Square waves of 5 s to 20 ms on an H200, polled each 7 ms: the answers of shared/reference/h200.md.
TEST(Calibration, TheRecordedH200) {
  const auto file = shared_dir() / "traces/h200/h200_square.csv";
  if (shared_dir().empty() || !std::filesystem::exists(file)) GTEST_SKIP() << "the recording traces/h200 is not here";
  SensorInfo info;
  info.name = "gpu0";
  info.interval = std::chrono::milliseconds(7);
  info.channels = {counter("gpu/0", Scope::gpu), power("gpu/0", Scope::gpu, Method::average),
                   power("gpu/0", Scope::gpu, Method::integral)};
  info.channels[1].column = "power_average_w";
  Trace trace = Trace::empty(info);
  Reference load;
  std::string phase;
  const auto rows = records(file);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto& r = rows[i];
    const auto value = [&](std::size_t k) { return parse_double(r.at(k)).value() * 1e-3; };
    trace.push(Row{mono_ns(parse_int(r.at(0)).value()), Nanos{0}, {value(1), value(2), value(3)}});
    if (r.at(8) != phase) load.step(parse_int(r.at(0)).value(), r.at(8) == "on" ? 1 : 0);
    phase = r.at(8);
  }
  load.step(trace.t_ns.back(), 0);
  const auto energy = calibrate_channel(trace, 0, load), average = calibrate_channel(trace, 1, load),
             instant = calibrate_channel(trace, 2, load);
  EXPECT_NEAR(energy.period_s.value(), 0.100, 0.005);
  EXPECT_NEAR(average.period_s.value(), 0.100, 0.005);
  EXPECT_NEAR(average.window_s.value().value, 1.0, 0.05);
  EXPECT_NEAR(instant.period_s.value(), 0.100, 0.02);
  EXPECT_LT(instant.window_s.value().value, 0.1);
  EXPECT_NEAR(average.energy_j.value() / energy.energy_j.value(), 1, 0.03);
}

}  // namespace
}  // namespace ergometer::test
