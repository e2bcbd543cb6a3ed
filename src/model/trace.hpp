// Rows of one sensor: as they leave the sensor (Row) and as a whole in memory (Trace, columnar, read-only once
// built). A missing value is nullopt; no number stands for "missing".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "model/sensor_info.hpp"

namespace ergometer {

// One reading. `values` has one entry a channel, in the order of SensorInfo::channels.
struct Row {
  MonoTime t;
  Nanos read_width{0};  // time the read took; 0 where the time is the device's own
  std::vector<std::optional<double>> values;
};

// Something that happened, for events.csv.
struct Event {
  MonoTime t;
  std::string source;  // sensor, "session", "command", ...
  std::string kind;    // gap, wrap, reset, throttle, control, late, lost, back, stuck, rejected, clock, suspend, note
  std::string detail;
};

// One column. `present` is empty when every value is there, else one flag a row.
class Column {
 public:
  Column() = default;
  // Takes whole vectors: `present` is empty or as long as `values`.
  Column(std::vector<double> values, std::vector<std::uint8_t> present)
      : values_(std::move(values)), present_(std::move(present)) {}
  void push(std::optional<double> value);
  [[nodiscard]] std::optional<double> operator[](std::size_t row) const {
    if (!present_.empty() && !present_[row]) return std::nullopt;
    return values_[row];
  }
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] bool complete() const { return present_.empty(); }
  // Raw values; entries whose flag is unset are meaningless.
  [[nodiscard]] const std::vector<double>& values() const { return values_; }
  void reserve(std::size_t n) { values_.reserve(n); }

 private:
  std::vector<double> values_;
  std::vector<std::uint8_t> present_;
};

struct Trace {
  SensorInfo info;
  std::vector<std::int64_t> t_ns;        // monotonic, ascending
  std::vector<std::int64_t> read_ns;     // empty when info.own_time
  std::vector<Column> columns;           // one a channel
  [[nodiscard]] std::size_t rows() const { return t_ns.size(); }
  // An empty trace with one column for each channel.
  static Trace empty(SensorInfo info);
  // Appends a row; its values must match the channels.
  void push(const Row& row);
  // Index of a column by name, or nullopt.
  [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;
};

}  // namespace ergometer
