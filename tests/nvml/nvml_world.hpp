// A machine with a fake NVIDIA driver in stepped time, and the readings that its sensors give over some seconds.
// Used by the tests of the nvml backend.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/nvml/nvml.hpp"
#include "fakes/nvml/fake_nvml_control.hpp"
#include "support/temp_dir.hpp"

namespace ergometer::test {

// What one sensor gave: its rows with their times (seconds since the start), events, and failed reads.
struct Series {
  std::vector<double> t;
  std::vector<std::vector<std::optional<double>>> rows;
  std::vector<Readings::Note> events;
  std::vector<std::pair<double, ErrorCode>> failures;
  std::vector<std::string> columns;

  [[nodiscard]] std::size_t index(const std::string& column) const {
    const auto it = std::find(columns.begin(), columns.end(), column);
    EXPECT_NE(it, columns.end()) << "no column " << column;
    return it == columns.end() ? 0 : static_cast<std::size_t>(it - columns.begin());
  }
  [[nodiscard]] std::vector<std::optional<double>> column(const std::string& name) const {
    std::vector<std::optional<double>> values;
    const auto i = index(name);
    for (const auto& row : rows) values.push_back(row[i]);
    return values;
  }
  // Trapezoid over the rows that have a value.
  [[nodiscard]] double integral(const std::string& name) const {
    const auto i = index(name);
    double sum = 0;
    std::optional<std::size_t> last;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (!rows[k][i]) continue;
      if (last) sum += (*rows[*last][i] + *rows[k][i]) / 2 * (t[k] - t[*last]);
      last = k;
    }
    return sum;
  }
  [[nodiscard]] std::size_t count(const std::string& kind) const {
    return static_cast<std::size_t>(
        std::count_if(events.begin(), events.end(), [&](const auto& event) { return event.kind == kind; }));
  }
  [[nodiscard]] std::string detail(const std::string& kind) const {
    for (const auto& event : events)
      if (event.kind == kind) return event.detail;
    return {};
  }
};

class NvmlWorld {
 public:
  explicit NvmlWorld(const std::string& library = FAKE_NVML)
      : fake(library),
        clock_(std::make_shared<SteppedClock>(
            mono_ns(kMonoStart), wall_ns(kMonoStart + wall_offset_),
            [this](MonoTime t) { fake.set_time(t, wall_ns(to_ns(t) + wall_offset_)); })) {
    clock_->join();
    fake.set_time(mono_ns(kMonoStart), wall_ns(kMonoStart + wall_offset_));
    host_.clock = clock_;
    host_.load = [this](const std::string& name) { return Library::open(name == "libcuda.so.1" ? cuda : name); };
    options.nvml_path = library;
  }
  ~NvmlWorld() { found.sensors.clear(); }

  // Plays a scenario (its text) and discovers. The scenario's second 0 is now.
  void discover(const std::string& scenario) {
    files_.write("scenario", scenario);
    ASSERT_TRUE(fake.ok());
    ASSERT_EQ(fake.load((files_ / "scenario").string()), 0);
    discover_nvml(host_, options, found);
  }

  void advance_to(double t) {
    StopSignal stop;
    clock_->sleep_until(mono_ns(kMonoStart) + from_seconds(t), stop);
  }
  void step_wall(double by) {
    const Nanos step = from_seconds(by);
    wall_offset_ += step.count();
    clock_->step_wall(step);
    fake.set_time(clock_->now(), clock_->wall());
  }
  [[nodiscard]] double now() const { return seconds(clock_->now() - mono_ns(kMonoStart)); }

  [[nodiscard]] std::shared_ptr<Sensor> sensor(const std::string& name) const {
    for (const auto& sensor : found.sensors)
      if (sensor->info().name == name) return sensor;
    return nullptr;
  }
  [[nodiscard]] bool has(const std::string& name, const std::string& column) const {
    const auto found_sensor = sensor(name);
    if (!found_sensor) return false;
    const auto& channels = found_sensor->info().channels;
    return std::any_of(channels.begin(), channels.end(), [&](const Channel& c) { return c.column == column; });
  }
  [[nodiscard]] Channel channel(const std::string& name, const std::string& column) const {
    if (const auto s = sensor(name))
      for (const auto& channel : s->info().channels)
        if (channel.column == column) return channel;
    ADD_FAILURE() << "no channel " << name << " " << column;
    return {};
  }
  [[nodiscard]] std::optional<Absence> absence(const std::string& what) const {
    for (const auto& absence : found.node.absences)
      if (absence.what == what) return absence;
    return std::nullopt;
  }

  // Reads the named sensors from now to `until`, each `interval` seconds, as a sampler would. Failed reads are tried
  // again at the same pace.
  std::map<std::string, Series> poll_all(const std::vector<std::string>& names, double until, double interval) {
    std::map<std::string, Series> all;
    const double begin = now();
    const auto steps = static_cast<int>(std::lround((until - begin) / interval));
    for (int k = 0; k <= steps; ++k) {
      advance_to(begin + k * interval);
      for (const auto& name : names) read_once(name, all[name]);
    }
    return all;
  }
  Series poll(const std::string& name, double until, double interval) {
    return std::move(poll_all({name}, until, interval)[name]);
  }

  // The machine's files are those of `tree` from now on, before discover().
  void use_tree() { host_.root = HostRoot(tree.path()); }

  FakeNvml fake;
  TempDir tree;
  DiscoverOptions options;
  Discovery found;
  std::string cuda = "libcuda-is-not-here.so.1";

 private:
  static constexpr std::int64_t kMonoStart = 1'000'000'000'000;

  void read_once(const std::string& name, Series& series) {
    const auto s = sensor(name);
    ASSERT_NE(s, nullptr) << "no sensor " << name;
    series.columns.clear();
    for (const auto& channel : s->info().channels) series.columns.push_back(channel.column);
    Readings readings;
    const auto result = s->read(readings);
    if (!result) series.failures.emplace_back(now(), result.error().code);
    for (auto& event : readings.events) series.events.push_back(event);
    for (auto& row : readings.rows) {
      ASSERT_EQ(row.values.size(), series.columns.size());
      const double t = s->info().own_time ? seconds(row.t - mono_ns(kMonoStart)) : now();
      if (!series.t.empty() && t <= series.t.back()) continue;
      series.t.push_back(t);
      series.rows.push_back(std::move(row.values));
    }
  }

  std::int64_t wall_offset_ = 1'796'000'000'000'000'000;
  std::shared_ptr<SteppedClock> clock_;
  Host host_;
  TempDir files_;
};

}  // namespace ergometer::test
