// Who a GPU is, as the driver tells it: texts, bus id, slices. Shared by the sensors and the controls of this backend.
#pragma once

#include <string>
#include <vector>

#include "device/nvml/nvml_api.hpp"
#include "device/nvml/visibility.hpp"

namespace ergometer::nvml {

constexpr unsigned kMaxGpus = 256;  // a count beyond it is no count

// What `ask` (name, uuid) answers; "" if nothing.
[[nodiscard]] std::string text_of(Return (*ask)(Device, char*, unsigned), Device device);
// "00000000:3B:00.0"; the short form with old drivers; "" if unknown.
[[nodiscard]] std::string bus_id_of(const Api& api, Device device);
// Empty for a GPU that is not cut.
[[nodiscard]] std::vector<MigInstance> slices_of(const Api& api, Device device, int parent);

}  // namespace ergometer::nvml
