#include "device/nvml/identity.hpp"

#include <algorithm>
#include <cstring>

namespace ergometer::nvml {

std::string text_of(Return (*ask)(Device, char*, unsigned), Device device) {
  char text[96] = {};
  if (!ask || ask(device, text, sizeof text - 1) != Return::success) return {};
  return text;
}

std::string bus_id_of(const Api& api, Device device) {
  // Every layout of this record begins with the short form; the buffer has room for any of them.
  alignas(8) char buffer[256] = {};
  if (!api.pci_info || api.pci_info(device, buffer) != Return::success) return {};
  PciInfo info;
  std::memcpy(&info, buffer, sizeof info);
  info.bus_id[sizeof info.bus_id - 1] = info.bus_id_legacy[sizeof info.bus_id_legacy - 1] = '\0';
  return api.pci_info_v3 && info.bus_id[0] ? info.bus_id : info.bus_id_legacy;
}

std::vector<MigInstance> slices_of(const Api& api, Device device, int parent) {
  std::vector<MigInstance> slices;
  unsigned count = 0;
  if (!api.max_mig_devices || !api.mig_device || api.max_mig_devices(device, &count) != Return::success) return slices;
  for (unsigned i = 0; i < std::min(count, 64U); ++i) {
    Device slice = nullptr;
    if (api.mig_device(device, i, &slice) != Return::success) continue;
    MigInstance instance{text_of(api.uuid, slice), parent, 0, 0, {}, {}};
    if (api.gpu_instance) api.gpu_instance(slice, &instance.gpu_instance);
    if (api.compute_instance) api.compute_instance(slice, &instance.compute_instance);
    DeviceAttributes size{};
    if (api.attributes && api.attributes(slice, &size) == Return::success) {
      instance.multiprocessors = size.multiprocessors;
      instance.memory_bytes = static_cast<double>(size.memory_mb) * 1024 * 1024;
    }
    slices.push_back(std::move(instance));
  }
  return slices;
}

}  // namespace ergometer::nvml
