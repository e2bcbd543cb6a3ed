#include "device/number_sensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ergometer {

NumberCell::NumberCell(const NumberColumn& column, const std::string& device)
    : file_(column.file, fmt::format("{} {}", device, column.channel.column)),
      label_(fmt::format("{} {}", device, column.channel.column)),
      scale_(column.scale),
      limit_(column.limit) {}

std::optional<double> NumberCell::read(Readings& out) {
  const auto number = file_.read(out);
  if (!number) return std::nullopt;
  const double value = static_cast<double>(*number) * scale_;
  const bool impossible = value < 0 || (limit_ > 0 && value > limit_);
  if (impossible && !rejected_) out.event("rejected", fmt::format("{}: {:.6g} cannot be", label_, value));
  rejected_ = impossible;
  return impossible ? std::nullopt : std::optional(value);
}

NumberSensor::NumberSensor(SensorInfo info, const std::vector<NumberColumn>& columns, const std::string& device)
    : Sensor(std::move(info)) {
  for (const auto& column : columns) {
    info_.channels.push_back(column.channel);
    cells_.emplace_back(column, device);
  }
}

Result<void> NumberSensor::read(Readings& out) {
  std::vector<std::optional<double>> values;
  values.reserve(cells_.size());
  for (auto& cell : cells_) values.push_back(cell.read(out));
  if (std::ranges::all_of(cells_, [](const NumberCell& cell) { return cell.error() != nullptr; }))
    return tl::unexpected(*cells_.front().error());
  out.add(std::move(values));
  return {};
}

std::vector<NumberColumn> readable(std::vector<NumberColumn> columns, const std::string& interface,
                                   const std::string& device, Discovery& out) {
  std::vector<NumberColumn> found;
  for (auto& column : columns) {
    const auto value = NumberFile(column.file, "").probe();
    if (value)
      found.push_back(std::move(column));
    else if (value.error().code == ErrorCode::permission_denied)
      out.node.absences.push_back({interface, fmt::format("{} {}", device, column.channel.column),
                                   value.error().message, "sudo chmod a+r " + column.file.string()});
  }
  return found;
}

}  // namespace ergometer
