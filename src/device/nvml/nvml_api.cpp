#include "device/nvml/nvml_api.hpp"

#include <fmt/format.h>

#include <initializer_list>

namespace ergometer::nvml {
namespace {

template <class Function>
bool find(const Library& library, Function*& entry, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if ((entry = library.function<Function>(name))) return true;
  return false;
}

Error load_error(const std::string& path, const Error& cause) {
  const bool absent = cause.message.find("cannot open shared object file: No such file") != std::string::npos;
  if (absent && path.find('/') == std::string::npos)
    return {ErrorCode::not_found, "no NVIDIA driver: " + path + " not found",
            "install the NVIDIA driver, or start the container with access to the GPUs (--gpus all)"};
  return {ErrorCode::not_found, fmt::format("cannot load the NVML library {}: {}", path, cause.message),
          "name the driver's libnvidia-ml.so.1 with --nvml or ERGOMETER_NVML"};
}

}  // namespace

Result<Api> load_api(const Host& host, const std::string& path) {
  auto library = host.load(path);
  if (!library) return tl::unexpected(load_error(path, library.error()));
  Api api;
  api.library = *library;
  const Library& lib = **library;

  const bool usable = find(lib, api.init, {"nvmlInit_v2", "nvmlInit"}) && find(lib, api.shutdown, {"nvmlShutdown"}) &&
                      find(lib, api.count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}) &&
                      find(lib, api.handle_by_index, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  if (!usable)
    return fail(ErrorCode::not_found, path + " is not an NVML library: it lacks nvmlInit or device enumeration",
                "name the driver's libnvidia-ml.so.1 with --nvml or ERGOMETER_NVML");

  find(lib, api.driver_version, {"nvmlSystemGetDriverVersion"});
  find(lib, api.nvml_version, {"nvmlSystemGetNVMLVersion"});
  find(lib, api.cuda_version, {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"});
  find(lib, api.handle_by_uuid, {"nvmlDeviceGetHandleByUUID"});
  find(lib, api.uuid, {"nvmlDeviceGetUUID"});
  find(lib, api.name, {"nvmlDeviceGetName"});
  api.pci_info_v3 = find(lib, api.pci_info, {"nvmlDeviceGetPciInfo_v3"});
  if (!api.pci_info_v3) find(lib, api.pci_info, {"nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"});
  find(lib, api.architecture, {"nvmlDeviceGetArchitecture"});
  find(lib, api.compute_capability, {"nvmlDeviceGetCudaComputeCapability"});

  find(lib, api.memory, {"nvmlDeviceGetMemoryInfo"});
  find(lib, api.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  find(lib, api.utilization, {"nvmlDeviceGetUtilizationRates"});
  find(lib, api.clock, {"nvmlDeviceGetClockInfo"});
  find(lib, api.temperature, {"nvmlDeviceGetTemperature"});
  find(lib, api.power_usage, {"nvmlDeviceGetPowerUsage"});
  find(lib, api.energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  find(lib, api.field_values, {"nvmlDeviceGetFieldValues"});
  find(lib, api.samples, {"nvmlDeviceGetSamples"});
  find(lib, api.clock_event_reasons,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  find(lib, api.enforced_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  find(lib, api.default_limit, {"nvmlDeviceGetPowerManagementDefaultLimit"});
  find(lib, api.limit_constraints, {"nvmlDeviceGetPowerManagementLimitConstraints"});

  find(lib, api.management_limit, {"nvmlDeviceGetPowerManagementLimit"});
  find(lib, api.set_management_limit, {"nvmlDeviceSetPowerManagementLimit"});
  find(lib, api.supported_memory_clocks, {"nvmlDeviceGetSupportedMemoryClocks"});
  find(lib, api.supported_graphics_clocks, {"nvmlDeviceGetSupportedGraphicsClocks"});
  find(lib, api.lock_graphics_clocks, {"nvmlDeviceSetGpuLockedClocks"});
  find(lib, api.reset_graphics_clocks, {"nvmlDeviceResetGpuLockedClocks"});
  find(lib, api.lock_memory_clocks, {"nvmlDeviceSetMemoryLockedClocks"});
  find(lib, api.reset_memory_clocks, {"nvmlDeviceResetMemoryLockedClocks"});
  find(lib, api.persistence, {"nvmlDeviceGetPersistenceMode"});
  find(lib, api.set_persistence, {"nvmlDeviceSetPersistenceMode"});

  // The plain name has a smaller record than _v2 and _v3 and came before them; it is not used.
  find(lib, api.compute_processes,
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  find(lib, api.process_utilization, {"nvmlDeviceGetProcessUtilization"});

  find(lib, api.mig_mode, {"nvmlDeviceGetMigMode"});
  find(lib, api.max_mig_devices, {"nvmlDeviceGetMaxMigDeviceCount"});
  find(lib, api.mig_device, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  find(lib, api.gpu_instance, {"nvmlDeviceGetGpuInstanceId"});
  find(lib, api.compute_instance, {"nvmlDeviceGetComputeInstanceId"});
  find(lib, api.attributes, {"nvmlDeviceGetAttributes_v2"});

  find(lib, api.gpm_support, {"nvmlGpmQueryDeviceSupport"});
  find(lib, api.gpm_alloc, {"nvmlGpmSampleAlloc"});
  find(lib, api.gpm_free, {"nvmlGpmSampleFree"});
  find(lib, api.gpm_sample, {"nvmlGpmSampleGet"});
  find(lib, api.gpm_mig_sample, {"nvmlGpmMigSampleGet"});
  find(lib, api.gpm_metrics, {"nvmlGpmMetricsGet"});
  return api;
}

std::string to_text(Return code) {
  switch (code) {
    case Return::success:
      return "success";
    case Return::uninitialized:
      return "NVML is not initialised";
    case Return::invalid_argument:
      return "invalid argument";
    case Return::not_supported:
      return "not supported";
    case Return::no_permission:
      return "no permission";
    case Return::not_found:
      return "not found";
    case Return::insufficient_size:
      return "insufficient size";
    case Return::driver_not_loaded:
      return "the NVIDIA driver is not loaded";
    case Return::timeout:
      return "timeout";
    case Return::irq_issue:
      return "interrupt trouble";
    case Return::library_not_found:
      return "a library of the driver was not found";
    case Return::function_not_found:
      return "the driver's NVML library lacks the function";
    case Return::gpu_is_lost:
      return "the GPU is lost (fell off the bus)";
    case Return::reset_required:
      return "the GPU needs a reset";
    case Return::operating_system:
      return "the operating system blocked the call";
    case Return::lib_rm_version_mismatch:
      return "driver and library have different versions";
    case Return::in_use:
      return "in use";
    case Return::no_data:
      return "no data";
    case Return::deprecated:
      return "deprecated";
    case Return::not_ready:
      return "not ready";
    case Return::gpu_not_found:
      return "no GPU found";
    case Return::unknown:
      return "unknown error";
  }
  return fmt::format("error {}", static_cast<int>(code));
}

bool is_fatal(Return code) {
  switch (code) {
    case Return::uninitialized:
    case Return::driver_not_loaded:
    case Return::gpu_is_lost:
    case Return::reset_required:
    case Return::operating_system:
    case Return::lib_rm_version_mismatch:
    case Return::gpu_not_found:
    case Return::unknown:
      return true;
    default:
      return false;
  }
}

bool is_unsupported(Return code) {
  return code == Return::not_supported || code == Return::function_not_found || code == Return::no_permission ||
         code == Return::deprecated || code == Return::invalid_argument;
}

double number_of(ValueType type, const Value& value) {
  switch (type) {
    case ValueType::f64:
      return value.f64;
    case ValueType::u32:
      return value.u32;
    case ValueType::ulong:
      return static_cast<double>(value.ulong);
    case ValueType::u64:
      return static_cast<double>(value.u64);
    case ValueType::s64:
      return static_cast<double>(value.s64);
    case ValueType::s32:
      return value.s32;
    case ValueType::u16:
      return value.u16;
  }
  return static_cast<double>(value.u64);
}

}  // namespace ergometer::nvml
