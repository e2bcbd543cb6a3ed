// The sensor gpuN of an AMD card: power files and the table gpu_metrics, with an eye on its energy counter. Used by the
// amdgpu discovery.
#pragma once

#include <memory>
#include <vector>

#include "device/amdgpu/gpu_metrics.hpp"
#include "device/number_sensor.hpp"

namespace ergometer::amdgpu {

// Watches an energy counter that freezes on some cards and steps back on others. Pure; times are of one clock.
class CounterWatch {
 public:
  // What to record for a counter that now reads `ticks` while the card draws `power_w`. A reading that did not move
  // while power is drawn brings nothing new: no value, and after 3 s the event "stuck"; "back" when it moves again. A
  // counter of 64 bits that fell was reset: the event "reset".
  [[nodiscard]] std::optional<double> take(std::uint64_t ticks, int bits, std::optional<double> power_w, MonoTime now,
                                           const std::string& device, Readings& out);

 private:
  std::optional<std::uint64_t> last_;
  MonoTime moved_{};
  bool stuck_ = false;
};

// Which columns the table fills; the channels come after those of the power files.
struct MetricsColumns {
  bool energy = false, socket_power = false, gfx = false, memory = false;
};

class CardSensor final : public Sensor {
 public:
  // `info` holds the channels of the power files and then of the table, in the order of MetricsColumns.
  CardSensor(SensorInfo info, const std::vector<NumberColumn>& powers, std::filesystem::path table,
             MetricsColumns columns, std::string device, std::shared_ptr<Clock> clock);
  Result<void> read(Readings& out) override;

 private:
  void read_table(std::optional<double> power_w, Readings& out, std::vector<std::optional<double>>& values);

  std::vector<NumberCell> powers_;
  KernelFile table_;
  ReadState table_state_;
  MetricsColumns columns_;
  CounterWatch watch_;
  bool rejected_ = false;
  std::string device_;
  std::shared_ptr<Clock> clock_;
};

}  // namespace ergometer::amdgpu
