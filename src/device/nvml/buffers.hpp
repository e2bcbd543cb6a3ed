// Sensors that harvest the driver's sample buffers: dense power (each 20 ms on recent GPUs) and utilisation, with
// the driver's own time stamps. The buffers are not consumed by reading: other tools still see all samples.
#pragma once

#include <vector>

#include "device/nvml/query.hpp"

namespace ergometer::nvml {

// One kind of sample and the column it fills.
struct BufferColumn {
  Sampling kind;
  double divisor = 1;
  double limit = kNoLimit;
  Channel channel;
};

// What a first look at a buffer found.
struct BufferProbe {
  Return code = Return::success;  // not_found counts as success: nothing sampled yet
  std::optional<Nanos> period;    // median distance of its samples, to the millisecond
};
[[nodiscard]] BufferProbe probe_buffer(const Driver::Access& access, Sampling kind);

// The channel of the power buffer with the period found, and those of the utilisation buffers.
[[nodiscard]] BufferColumn power_buffer(const GpuFacts& gpu, std::optional<Nanos> period);
[[nodiscard]] BufferColumn utilisation_buffer(const GpuFacts& gpu, Sampling kind, std::optional<Nanos> period);

class BufferSensor final : public Sensor {
 public:
  BufferSensor(std::shared_ptr<Driver> driver, std::shared_ptr<Gpu> gpu, SensorInfo info,
               std::vector<BufferColumn> columns);
  // Hands out what is new since the last read. The first read hands out at most the last two seconds.
  Result<void> read(Readings& out) override;

 private:
  struct Timed;
  Return harvest(const Driver::Access& access, std::size_t column, std::vector<Timed>& into);

  std::shared_ptr<Driver> driver_;
  std::shared_ptr<Gpu> gpu_;
  std::vector<BufferColumn> columns_;
  std::vector<std::uint64_t> last_us_;  // newest sample seen, by column
  std::vector<bool> off_;
  std::vector<Sample> buffer_;
  Cells cells_;
  bool first_ = true;
  bool future_ = false;  // samples from the future were seen and reported
  unsigned generation_ = 0;
};

}  // namespace ergometer::nvml
