// A fake /sys and /proc in a temporary folder, with the discovery over it. Used by the tests of the kernel file
// backends.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "device/sensor.hpp"
#include "support/temp_dir.hpp"

namespace ergometer::test {

// A clock that a test sets; nothing sleeps on it.
class ManualClock final : public Clock {
 public:
  MonoTime now() override { return mono_ns(mono); }
  WallTime wall() override { return wall_ns(mono + offset); }
  bool sleep_until(MonoTime, StopSignal&) override { return true; }
  std::int64_t mono = 1'000'000'000;
  std::int64_t offset = 0;
};

struct FakeTree : TempDir {
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  Host host() const { return Host{HostRoot(path()), {}, clock}; }

  void powercap(const std::string& id, const std::string& name, std::int64_t uj,
                std::int64_t range_uj = 262143328850) const {
    const auto folder = "/sys/class/powercap/" + id + "/";
    write(folder + "name", name + "\n");
    write(folder + "max_energy_range_uj", fmt::format("{}\n", range_uj));
    energy(id, uj);
  }
  void energy(const std::string& id, std::int64_t uj) const {
    write("/sys/class/powercap/" + id + "/energy_uj", fmt::format("{}\n", uj));
  }
  void topology(int cpu, int package, int die, int core) const {
    const auto folder = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
    write(folder + "physical_package_id", fmt::format("{}\n", package));
    write(folder + "die_id", fmt::format("{}\n", die));
    write(folder + "core_id", fmt::format("{}\n", core));
  }
};

using Values = std::vector<std::optional<double>>;

// The only row of one read.
inline Values read_row(Sensor& sensor, Readings& out) {
  out.rows.clear();
  const auto result = sensor.read(out);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  EXPECT_EQ(out.rows.size(), 1u);
  if (out.rows.size() != 1) return Values(sensor.info().channels.size());
  EXPECT_EQ(out.rows[0].values.size(), sensor.info().channels.size());
  return out.rows[0].values;
}
inline Values read_row(Sensor& sensor) {
  Readings out;
  return read_row(sensor, out);
}

inline std::size_t column(const Sensor& sensor, const std::string& name) {
  const auto& channels = sensor.info().channels;
  const auto it = std::find_if(channels.begin(), channels.end(), [&](const Channel& c) { return c.column == name; });
  if (it == channels.end()) ADD_FAILURE() << sensor.info().name << " has no column " << name;
  return it == channels.end() ? 0 : static_cast<std::size_t>(it - channels.begin());
}
inline const Channel& channel(const Sensor& sensor, const std::string& name) {
  return sensor.info().channels[column(sensor, name)];
}

// Gain of the channels that belong to the total, one figure a domain (the first channel of it), between two rows.
inline double total_gain(const Sensor& sensor, const Values& first, const Values& last) {
  double sum = 0;
  for (std::size_t i = 0; i < first.size(); ++i)
    if (sensor.info().channels[i].in_total) sum += last[i].value() - first[i].value();
  return sum;
}

inline std::size_t count_events(const Readings& out, const std::string& kind) {
  return static_cast<std::size_t>(
      std::count_if(out.events.begin(), out.events.end(), [&](const auto& e) { return e.kind == kind; }));
}

inline std::shared_ptr<Sensor> sensor_named(const Discovery& found, const std::string& name) {
  for (const auto& sensor : found.sensors)
    if (sensor->info().name == name) return sensor;
  ADD_FAILURE() << "no sensor " << name;
  return nullptr;
}

}  // namespace ergometer::test
