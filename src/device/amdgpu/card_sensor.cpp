#include "device/amdgpu/card_sensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ergometer::amdgpu {
namespace {
constexpr Nanos kFrozenAfter = std::chrono::seconds(3);
}

std::optional<double> CounterWatch::take(std::uint64_t ticks, int bits, std::optional<double> power_w, MonoTime now,
                                         const std::string& device, Readings& out) {
  const double joules = static_cast<double>(ticks) * kJoulesPerTick;
  if (!last_ || *last_ != ticks) {
    if (last_ && ticks < *last_ && bits == 64)
      out.event("reset", fmt::format("{}: the energy counter fell from {:.6g} J to {:.6g} J", device,
                                     static_cast<double>(*last_) * kJoulesPerTick, joules));
    if (stuck_) out.event("back", fmt::format("{}: the energy counter moves again", device));
    stuck_ = false;
    last_ = ticks;
    moved_ = now;
    return joules;
  }
  if (!power_w || *power_w <= 0) return joules;
  if (!stuck_ && now - moved_ >= kFrozenAfter) {
    stuck_ = true;
    out.event("stuck", fmt::format("{}: the energy counter stood still for {:.3g} s at {:.4g} W", device,
                                   seconds(now - moved_), *power_w));
  }
  return std::nullopt;
}

CardSensor::CardSensor(SensorInfo info, const std::vector<NumberColumn>& powers, std::filesystem::path table,
                       MetricsColumns columns, std::string device, std::shared_ptr<Clock> clock)
    : Sensor(std::move(info)),
      table_(std::move(table)),
      table_state_(device + " gpu_metrics"),
      columns_(columns),
      device_(std::move(device)),
      clock_(std::move(clock)) {
  for (const auto& column : powers) powers_.emplace_back(column, device_);
}

void CardSensor::read_table(std::optional<double> power_w, Readings& out, std::vector<std::optional<double>>& values) {
  const auto bytes = table_.read();
  const auto table = bytes ? parse_gpu_metrics(*bytes) : tl::unexpected(bytes.error());
  if (!table) {
    table_state_.bad(out, table.error());
    values.resize(info_.channels.size());
    return;
  }
  table_state_.good(out);
  if (!power_w) power_w = table->socket_w;
  if (columns_.energy)
    values.push_back(table->energy_ticks
                         ? watch_.take(*table->energy_ticks, table->energy_bits, power_w, clock_->now(), device_, out)
                         : std::nullopt);
  if (columns_.socket_power) values.push_back(table->socket_w);
  const bool impossible = table->gfx_active.value_or(0) > 1 || table->memory_active.value_or(0) > 1;
  if (impossible && !rejected_) out.event("rejected", fmt::format("{}: an activity above 100 %", device_));
  rejected_ = impossible;
  const auto share = [](std::optional<double> v) { return v && *v <= 1 ? v : std::nullopt; };
  if (columns_.gfx) values.push_back(share(table->gfx_active));
  if (columns_.memory) values.push_back(share(table->memory_active));
}

Result<void> CardSensor::read(Readings& out) {
  std::vector<std::optional<double>> values;
  values.reserve(info_.channels.size());
  for (auto& power : powers_) values.push_back(power.read(out));
  const auto power = std::ranges::find_if(values, [](const auto& v) { return v.has_value(); });
  if (values.size() < info_.channels.size()) read_table(power == values.end() ? std::nullopt : *power, out, values);
  const Error* table_error = table_state_.error();
  const Error* file_error = powers_.empty() ? table_error : powers_.front().error();
  const bool files_failed = std::ranges::all_of(powers_, [](const auto& p) { return p.error() != nullptr; });
  const bool uses_table = info_.channels.size() > powers_.size();
  if (files_failed && (table_error || !uses_table)) return tl::unexpected(table_error ? *table_error : *file_error);
  out.add(std::move(values));
  return {};
}

}  // namespace ergometer::amdgpu
