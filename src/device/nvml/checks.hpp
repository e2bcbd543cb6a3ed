// What is taken as a reading and what is not: markers that mean "no value" and numbers that cannot be. A rejected
// number becomes a missing value and is counted; none is ever clamped. Used by this backend's sensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/sensor.hpp"

namespace ergometer::nvml {

// True for the markers that NVIDIA's interfaces use for "no value": all ones in 32 and 64 bits, and the blank ranges
// of 32-bit integers (2147483632..8), 64-bit integers (9223372036854775792..8) and floating point (2^47 and beyond
// up to its eighth successor).
[[nodiscard]] bool is_blank(std::uint64_t raw);
[[nodiscard]] bool is_blank(double raw);

// Cells of one row under construction, with the rejections of each column. One a sensor; not thread-safe.
class Cells {
 public:
  explicit Cells(std::vector<std::string> columns);

  // Starts a row. Values and limits are in the column's own unit.
  void begin();
  // Keeps `value` unless it is not finite or above `limit`; `raw` is looked at for blank markers first.
  void put(std::size_t column, std::uint64_t raw, double value, double limit);
  void put(std::size_t column, double value, double limit);
  // Counts a value as rejected; the cell stays missing.
  void reject(std::size_t column, const std::string& why);
  // Reports each burst of rejections that has ended (or reached 10, 100, ...) as one event "rejected" with its count.
  void finish(Readings& out);

  [[nodiscard]] std::vector<std::optional<double>>& values() { return values_; }
  [[nodiscard]] std::optional<double> operator[](std::size_t column) const { return values_[column]; }

 private:
  struct Burst {
    std::uint64_t count = 0;
    bool now = false;    // rejected in this row
    bool asked = false;  // the column had an answer in this row
    std::string why;
  };
  std::vector<std::string> columns_;
  std::vector<std::optional<double>> values_;
  std::vector<Burst> bursts_;
};

}  // namespace ergometer::nvml
