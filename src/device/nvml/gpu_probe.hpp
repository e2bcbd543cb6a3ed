// Looks at one GPU at discovery: who it is, what it can do, and its sensors. Run on a thread a GPU, so that a sick
// GPU whose calls hang hides only itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/nvml/driver.hpp"
#include "device/nvml/visibility.hpp"
#include "device/process_view.hpp"
#include "device/sensor.hpp"

namespace ergometer::nvml {

struct ProbeOptions {
  std::optional<Nanos> interval;  // of the gauges
  bool dense = false;             // the energy counter at that interval too
  ProcessView processes;          // to tell the command's processes from others
};

struct GpuParts {
  GpuInfo info;  // visible and ordinal are not set here
  std::shared_ptr<Gpu> gpu;
  std::vector<std::shared_ptr<Sensor>> sensors;
  std::vector<MigInstance> slices;
  std::vector<Absence> absences;
};

// Never fails: a GPU that does not answer has the state "lost" or "not measurable" and absences with the reason.
// Costs about 10 ms on an H200, most of it one read of the energy counter.
[[nodiscard]] GpuParts probe_gpu(const std::shared_ptr<Driver>& driver, int index, const ProbeOptions& options);

// The parts of a GPU that gave no answer in the time allowed.
[[nodiscard]] GpuParts silent_gpu(int index);

}  // namespace ergometer::nvml
