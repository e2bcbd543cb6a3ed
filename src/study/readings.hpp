// What the sensors of a run read while its command worked, by channel: for metrics of runs without regions, and for
// validity. Used by the engine.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "model/channel.hpp"

namespace ergometer {

struct ChannelReadings {
  std::size_t count = 0;
  double first = 0, last = 0, lowest = 0, highest = 0, sum = 0;  // meaningless at count 0
  Quantity quantity = Quantity::count;
  Behaviour behaviour = Behaviour::gauge;
  Scope scope = Scope::system;
  std::optional<Method> method;
  bool in_total = true, measured = true;
  [[nodiscard]] double mean() const { return sum / static_cast<double>(count); }
  [[nodiscard]] double growth() const { return last - first; }
};

// By "DOMAIN/COLUMN": "gpu/0/temperature_celsius". Rows before the command and after it are left out, but for the nearest
// ones of counters; of several nodes the first is taken. Errors: those of reading the run.
using RunReadings = std::map<std::string, ChannelReadings>;
[[nodiscard]] Result<RunReadings> read_readings(const std::filesystem::path& run);

}  // namespace ergometer
