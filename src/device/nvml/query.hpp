// Query: one call of the driver library and the columns that it fills. Sensors that poll (gauges, energy counter,
// slow values) are lists of queries read by one class, and discovery asks each query once to see what a GPU can do.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "device/nvml/checks.hpp"
#include "device/nvml/driver.hpp"
#include "device/sensor.hpp"

namespace ergometer::nvml {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct Query {
  std::string what;               // names it in an absence: "energy counter"; empty: not worth one
  std::vector<Channel> channels;  // the columns it fills, one after another
  // Fills cells[first...]; a missing value stays as it is. May keep state; called from one thread.
  std::function<Return(const Driver::Access&, Cells& cells, std::size_t first, Readings& out)> ask;
  bool off = false;  // the driver said that it cannot: not asked again
};

[[nodiscard]] bool has_column(const Query& query, std::string_view column);
// The columns that a sensor's cells are named after.
[[nodiscard]] std::vector<std::string> column_names(const SensorInfo& info);

// What one GPU is, as far as its queries need to know.
struct GpuFacts {
  GpuInfo info;
  std::string domain;        // "gpu/0"
  double power_limit_w = 0;  // readings above it are rejected: twice the highest limit that can be set
  // What nvmlDeviceGetPowerUsage and field 186 return on this architecture.
  struct Power {
    Method method = Method::integral;  // of the classic call: average or momentary
    std::optional<Nanos> window, instant_window, period;
    std::string note;
  } power;
};

// The behaviour of the power readings by architecture (Yang et al. 2023, arXiv:2312.02741, and the driver's notes).
[[nodiscard]] GpuFacts::Power power_behaviour(unsigned architecture, int compute_major, int compute_minor);

// A channel of the GPU: domain, device and scope filled in.
[[nodiscard]] Channel gpu_channel(const GpuFacts& gpu, std::string column, Quantity quantity, std::string unit,
                                  Behaviour behaviour = Behaviour::gauge);

// All that could be asked, by sensor. Fields that need the field-value call are filtered by one such call.
[[nodiscard]] std::vector<Query> fast_queries(const GpuFacts& gpu, const Driver::Access& access);
[[nodiscard]] std::vector<Query> energy_queries(const GpuFacts& gpu, const Driver::Access& access);
[[nodiscard]] std::vector<Query> slow_queries(const GpuFacts& gpu, const Driver::Access& access);
[[nodiscard]] std::vector<Query> activity_queries(const GpuFacts& gpu, std::shared_ptr<Driver> driver,
                                                  const Driver::Access& access);

// Fields of nvmlDeviceGetFieldValues, read by one call.
struct FieldColumn {
  Field field;
  FieldScope scope = kScopeGpu;
  double divisor = 1;
  double limit = kNoLimit;  // in the channel's unit
  Channel channel;
};
// One query for those of `columns` that the GPU knows; no channels if it knows none.
[[nodiscard]] Query field_query(std::string what, std::vector<FieldColumn> columns, const Driver::Access& access);

// Polls its queries; a row holds what answered. An Error if nothing did and the GPU or driver is away.
class QuerySensor final : public Sensor {
 public:
  QuerySensor(std::shared_ptr<Driver> driver, std::shared_ptr<Gpu> gpu, SensorInfo info, std::vector<Query> queries,
              std::string thread = {});
  Result<void> read(Readings& out) override;

 private:
  std::shared_ptr<Driver> driver_;
  std::shared_ptr<Gpu> gpu_;
  std::vector<Query> queries_;
  Cells cells_;
  unsigned generation_ = 0;
};

}  // namespace ergometer::nvml
