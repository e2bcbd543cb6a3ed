// DrmCard: a graphics card as /sys/class/drm lists it. Used by the backends that measure cards through their kernel
// driver (amdgpu, intelgpu).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "model/node.hpp"

namespace ergometer {

struct DrmCard {
  int number = 0;                // of /sys/class/drm/cardN; changes between boots
  std::filesystem::path folder;  // /sys/class/drm/cardN
  std::filesystem::path device;  // its device folder
  std::string pci_bus_id;        // "0000:03:00.0"
  std::string pci_id;            // vendor and device: "1002:740C"
};

// Cards of the kernel driver `driver` that sit on the PCI bus, in the order of their bus ids. Outputs ("card0-DP-1")
// and partitions of a card, which have no bus id of their own, are left out.
[[nodiscard]] std::vector<DrmCard> drm_cards(const HostRoot& root, std::string_view driver);

// The hwmon folders of a device, in the order of their names.
[[nodiscard]] std::vector<std::filesystem::path> hwmon_folders(const std::filesystem::path& device);

// Whether the NVIDIA kernel driver is loaded, so that there may be NVIDIA GPUs.
[[nodiscard]] bool nvidia_driver_loaded(const HostRoot& root);

// A file with a positive whole number, divided by a million (hwmon's microwatts and microjoules); unset for anything
// else.
[[nodiscard]] std::optional<double> positive_micro(const std::filesystem::path& file);

// A gauge of a card: domain, device and scope filled in.
[[nodiscard]] Channel card_channel(const GpuInfo& gpu, std::string column, Quantity quantity, std::string unit);

}  // namespace ergometer
