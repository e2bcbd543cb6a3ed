// NumberSensor: polls kernel files with one whole number each, a column a file. Used by the backends of graphics cards.
#pragma once

#include <filesystem>
#include <vector>

#include "device/kernel_file.hpp"

namespace ergometer {

struct NumberColumn {
  std::filesystem::path file;
  double scale = 1;  // value = number in the file times scale, in the channel's unit
  double limit = 0;  // a value above it cannot be: missing, with an event; 0: no limit
  Channel channel;
};

// Reads a number file and applies scale and limit. Not thread-safe.
class NumberCell {
 public:
  // `device` names the card in events.
  NumberCell(const NumberColumn& column, const std::string& device);
  [[nodiscard]] std::optional<double> read(Readings& out);
  [[nodiscard]] const Error* error() const { return file_.error(); }

 private:
  NumberFile file_;
  std::string label_;
  double scale_, limit_;
  bool rejected_ = false;
};

class NumberSensor final : public Sensor {
 public:
  // `info` gets the columns' channels; `device` names the card in events.
  NumberSensor(SensorInfo info, const std::vector<NumberColumn>& columns, const std::string& device);
  Result<void> read(Readings& out) override;

 private:
  std::vector<NumberCell> cells_;
};

// Those of `columns` whose file has a number now. A file that is there and may not be read becomes an Absence.
[[nodiscard]] std::vector<NumberColumn> readable(std::vector<NumberColumn> columns, const std::string& interface,
                                                 const std::string& device, Discovery& out);

}  // namespace ergometer
