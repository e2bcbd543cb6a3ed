// NVML's functions as a table, looked up one by one in an opened library: what an old driver lacks is a null entry
// and switches off only what needs it. Used by this backend alone.
#pragma once

#include <memory>
#include <string>

#include "device/host.hpp"
#include "device/nvml/nvml_abi.hpp"

namespace ergometer::nvml {

// The entries init, shutdown, count and handle_by_index are always there after load_api; any other may be null.
struct Api {
  std::shared_ptr<Library> library;

  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  Return (*driver_version)(char*, unsigned) = nullptr;
  Return (*nvml_version)(char*, unsigned) = nullptr;
  Return (*cuda_version)(int*) = nullptr;  // 13000: 13.0

  Return (*count)(unsigned*) = nullptr;
  Return (*handle_by_index)(unsigned, Device*) = nullptr;
  Return (*handle_by_uuid)(const char*, Device*) = nullptr;
  Return (*uuid)(Device, char*, unsigned) = nullptr;
  Return (*name)(Device, char*, unsigned) = nullptr;
  Return (*pci_info)(Device, void*) = nullptr;  // fills a PciInfo if pci_info_v3; else only bus_id_legacy is certain
  bool pci_info_v3 = false;
  Return (*architecture)(Device, unsigned*) = nullptr;
  Return (*compute_capability)(Device, int*, int*) = nullptr;

  Return (*memory)(Device, Memory*) = nullptr;
  Return (*memory_v2)(Device, MemoryV2*) = nullptr;
  Return (*utilization)(Device, Utilization*) = nullptr;
  Return (*clock)(Device, ClockKind, unsigned*) = nullptr;              // MHz
  Return (*temperature)(Device, unsigned sensor, unsigned*) = nullptr;  // sensor 0: the chip, degrees Celsius
  Return (*power_usage)(Device, unsigned*) = nullptr;                   // mW
  Return (*energy)(Device, std::uint64_t*) = nullptr;                   // mJ; 3 to 16 ms on an H200
  Return (*field_values)(Device, int, FieldValue*) = nullptr;
  Return (*samples)(Device, Sampling, std::uint64_t since_us, ValueType*, unsigned*, Sample*) = nullptr;
  Return (*clock_event_reasons)(Device, std::uint64_t*) = nullptr;
  Return (*enforced_limit)(Device, unsigned*) = nullptr;  // mW, as the next two
  Return (*default_limit)(Device, unsigned*) = nullptr;
  Return (*limit_constraints)(Device, unsigned* min, unsigned* max) = nullptr;

  // Controls: what is set, and setting it. Clocks in MHz.
  Return (*management_limit)(Device, unsigned*) = nullptr;  // mW, as asked for; enforced_limit may be lower
  Return (*set_management_limit)(Device, unsigned) = nullptr;
  Return (*supported_memory_clocks)(Device, unsigned* count, unsigned*) = nullptr;
  Return (*supported_graphics_clocks)(Device, unsigned memory_clock, unsigned* count, unsigned*) = nullptr;
  Return (*lock_graphics_clocks)(Device, unsigned min, unsigned max) = nullptr;
  Return (*reset_graphics_clocks)(Device) = nullptr;
  Return (*lock_memory_clocks)(Device, unsigned min, unsigned max) = nullptr;
  Return (*reset_memory_clocks)(Device) = nullptr;
  Return (*persistence)(Device, unsigned* enabled) = nullptr;
  Return (*set_persistence)(Device, unsigned enabled) = nullptr;

  Return (*compute_processes)(Device, unsigned*, ProcessInfo*) = nullptr;
  Return (*process_utilization)(Device, ProcessUtilization*, unsigned*, std::uint64_t since_us) = nullptr;

  Return (*mig_mode)(Device, unsigned* current, unsigned* pending) = nullptr;
  Return (*max_mig_devices)(Device, unsigned*) = nullptr;
  Return (*mig_device)(Device, unsigned, Device*) = nullptr;
  Return (*gpu_instance)(Device, unsigned*) = nullptr;
  Return (*compute_instance)(Device, unsigned*) = nullptr;
  Return (*attributes)(Device, DeviceAttributes*) = nullptr;  // of a slice

  Return (*gpm_support)(Device, GpmSupport*) = nullptr;
  Return (*gpm_alloc)(GpmSample*) = nullptr;
  Return (*gpm_free)(GpmSample) = nullptr;
  Return (*gpm_sample)(Device, GpmSample) = nullptr;
  Return (*gpm_mig_sample)(Device, unsigned gpu_instance, GpmSample) = nullptr;
  Return (*gpm_metrics)(GpmRequest*) = nullptr;
};

// Opens the library and fills the table; initialises nothing. Errors: not_found with a reason fit for an Absence.
[[nodiscard]] Result<Api> load_api(const Host& host, const std::string& path);

// "GPU is lost", "not supported", ... (our own words; independent of the library).
[[nodiscard]] std::string to_text(Return code);

// The code says that the device or the whole driver no longer answers, not that one query has no value.
[[nodiscard]] bool is_fatal(Return code);

// The code says that the query will never have a value on this device or with this driver.
[[nodiscard]] bool is_unsupported(Return code);

// The number in a tagged value, and whether it is one of the markers that mean "no value".
[[nodiscard]] double number_of(ValueType type, const Value& value);

}  // namespace ergometer::nvml
