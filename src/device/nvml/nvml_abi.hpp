// The part of NVML's binary interface that this backend uses, in our own few declarations: types, return codes and
// ids as NVIDIA publishes them. No vendor header is needed to build. Shared with the fake library of the tests.
#pragma once

#include <cstdint>

namespace ergometer::nvml {

using Device = struct DeviceOpaque*;        // nvmlDevice_t
using GpmSample = struct GpmSampleOpaque*;  // nvmlGpmSample_t

// nvmlReturn_t
enum class Return : int {
  success = 0,
  uninitialized = 1,
  invalid_argument = 2,
  not_supported = 3,
  no_permission = 4,
  not_found = 6,
  insufficient_size = 7,
  driver_not_loaded = 9,
  timeout = 10,
  irq_issue = 11,
  library_not_found = 12,
  function_not_found = 13,
  gpu_is_lost = 15,
  reset_required = 16,
  operating_system = 17,
  lib_rm_version_mismatch = 18,
  in_use = 19,
  no_data = 21,
  deprecated = 26,
  not_ready = 27,
  gpu_not_found = 28,
  unknown = 999,
};

// nvmlValueType_t and nvmlValue_t
enum class ValueType : unsigned {
  f64 = 0,
  u32 = 1,
  ulong = 2,
  u64 = 3,
  s64 = 4,
  s32 = 5,
  u16 = 6,
};

union Value {
  double f64;
  std::int32_t s32;
  std::uint32_t u32;
  unsigned long ulong;
  std::uint64_t u64;
  std::int64_t s64;
  std::uint16_t u16;
};

struct FieldValue {  // nvmlFieldValue_t
  std::uint32_t field;
  std::uint32_t scope;
  std::int64_t timestamp_us;  // wall clock
  std::int64_t latency_us;
  ValueType type;
  Return status;
  Value value;
};
static_assert(sizeof(FieldValue) == 40);

struct Sample {                // nvmlSample_t
  std::uint64_t timestamp_us;  // wall clock
  Value value;
};
static_assert(sizeof(Sample) == 16);

struct Utilization {  // nvmlUtilization_t, percent
  std::uint32_t gpu;
  std::uint32_t memory;
};

struct Memory {  // nvmlMemory_t, bytes
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;
};

struct MemoryV2 {  // nvmlMemory_v2_t, bytes; `used` is without what the driver keeps for itself, as nvidia-smi shows it
  std::uint32_t version;
  std::uint64_t total;
  std::uint64_t reserved;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(MemoryV2) == 40);
constexpr std::uint32_t kMemoryV2Version = sizeof(MemoryV2) | 2U << 24;

struct PciInfo {  // nvmlPciInfo_t as of nvmlDeviceGetPciInfo_v3
  char bus_id_legacy[16];
  std::uint32_t domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct ProcessInfo {  // nvmlProcessInfo_t as of ..RunningProcesses_v2 and _v3
  std::uint32_t pid;
  std::uint64_t used_memory;  // bytes; all ones: not available
  std::uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

struct ProcessUtilization {  // nvmlProcessUtilizationSample_t, percent
  std::uint32_t pid;
  std::uint64_t timestamp_us;
  std::uint32_t sm, memory, encoder, decoder;
};
static_assert(sizeof(ProcessUtilization) == 32);

struct DeviceAttributes {  // nvmlDeviceAttributes_t, of a MIG slice
  std::uint32_t multiprocessors, copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
  std::uint32_t gpu_slices, compute_slices;
  std::uint64_t memory_mb;  // MiB
};
static_assert(sizeof(DeviceAttributes) == 40);

struct GpmMetric {  // nvmlGpmMetric_t
  std::uint32_t id;
  Return status;
  double value;
  const char *short_name, *long_name, *unit;
};
static_assert(sizeof(GpmMetric) == 40);

// nvmlGpmMetricsGet_t without its trailing array metrics[]: the array's length has grown between releases under the
// same version number, so that the caller must leave room behind and say in `count` how many it fills.
struct GpmRequest {
  std::uint32_t version;  // 1
  std::uint32_t count;
  GpmSample first, second;
};
static_assert(sizeof(GpmRequest) == 24);

struct GpmSupport {       // nvmlGpmSupport_t
  std::uint32_t version;  // 1
  std::uint32_t supported;
};

enum class Sampling : unsigned { power = 0, gpu_utilization = 1, memory_utilization = 2 };  // nvmlSamplingType_t
enum class ClockKind : unsigned { graphics = 0, sm = 1, memory = 2 };                       // nvmlClockType_t

// Field ids (NVML_FI_DEV_...). The ids 185 to 192 take a scope.
enum Field : std::uint32_t {
  kFieldViolationPower = 74,
  kFieldViolationThermal = 75,
  kFieldViolationSyncBoost = 76,
  kFieldViolationBoardLimit = 77,
  kFieldViolationLowUtilization = 78,
  kFieldViolationReliability = 79,
  kFieldViolationAppClocks = 80,
  kFieldViolationBaseClocks = 81,
  kFieldMemoryTemperature = 82,
  kFieldPowerAverage = 185,
  kFieldPowerInstant = 186,
  kFieldPowerLimit = 190,
  kFieldPowerLimitRequested = 192,
  kFieldSwThermalSlowdown = 269,
  kFieldHwThermalSlowdown = 270,
  kFieldHwPowerBrake = 271,
};
enum FieldScope : std::uint32_t { kScopeGpu = 0, kScopeModule = 1, kScopeMemory = 2 };

// GPM metric ids (nvmlGpmMetricId_t): percent, or MiB/s for the traffic.
enum GpmId : std::uint32_t {
  kGpmGraphics = 1,
  kGpmSmActive = 2,
  kGpmSmOccupancy = 3,
  kGpmTensor = 5,
  kGpmDram = 10,
  kGpmPcieTx = 20,
  kGpmPcieRx = 21,
  kGpmNvlinkRx = 60,
  kGpmNvlinkTx = 61,
};

// nvmlDeviceArchitecture_t
enum Architecture : unsigned {
  kKepler = 2,
  kMaxwell = 3,
  kPascal = 4,
  kVolta = 5,
  kTuring = 6,
  kAmpere = 7,
  kAda = 8,
  kHopper = 9,
  kArchitectureUnknown = 0xffffffff,
};

}  // namespace ergometer::nvml
