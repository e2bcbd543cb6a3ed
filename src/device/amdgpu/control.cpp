#include "device/amdgpu/control.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.hpp"
#include "base/text.hpp"
#include "device/file_control.hpp"

namespace ergometer {
namespace {
namespace fs = std::filesystem;

constexpr double kMicro = 1e6;

// The hwmon folder of amdgpu below a card's device, or "".
fs::path hwmon_of(const fs::path& device) {
  for (const auto& name : list_dir(device / "hwmon"))
    if (trimmed_text(device / "hwmon" / name / "name") == "amdgpu") return device / "hwmon" / name;
  return {};
}

// The bus id of the card: what stays when cards are numbered anew. Its device folder is a link to it, or says it.
std::string bus_id_of(const fs::path& device) {
  const std::string uevent = trimmed_text(device / "uevent");
  for (const auto line : split(uevent, '\n'))
    if (line.starts_with("PCI_SLOT_NAME=")) return std::string(line.substr(14));
  std::error_code ec;
  const auto real = fs::canonical(device, ec);
  return ec ? device.string() : real.filename().string();
}

void add_cap(std::uint64_t number, const fs::path& device, ControlDiscovery& out) {
  const auto hwmon = hwmon_of(device);
  const auto file = hwmon / "power1_cap";
  if (hwmon.empty() || !file_number(file, kMicro)) return;
  ControlInfo info;
  info.name = fmt::format("gpu-card/{}/power", number);
  info.backend = "amdgpu";
  info.device_id = bus_id_of(device);
  const auto product = trimmed_text(device / "product_name");
  info.device_name = product.empty() ? "AMD GPU " + info.device_id : product;
  info.resolution = 1;  // the driver cuts it to whole watts
  info.rank = 4;
  const auto watts = [&](const char* name) -> std::optional<ControlValue> {
    const auto value = file_number(hwmon / name, kMicro);
    return value ? std::optional<ControlValue>(Watts(*value)) : std::nullopt;
  };
  info.lowest = watts("power1_cap_min");
  info.highest = watts("power1_cap_max");
  info.default_value = watts("power1_cap_default");
  // A card without a settable cap shows a maximum of 0.
  if (info.highest && number_of(*info.highest) <= 0) return;
  out.controls.push_back(std::make_shared<FileControl>(std::move(info), file, FileFormat{kMicro}));
}

}  // namespace

void find_amdgpu_controls(const HostRoot& root, ControlDiscovery& out) {
  const auto before = out.controls.size();
  const auto drm = root.path("/sys/class/drm");
  for (const auto& name : list_dir(drm))
    if (const auto number = name.starts_with("card") ? parse_uint(std::string_view(name).substr(4)) : std::nullopt)
      add_cap(*number, drm / name / "device", out);
  if (out.controls.size() == before)
    out.absences.push_back({"amdgpu", "power cap of AMD GPUs", "no card of the driver amdgpu has power1_cap", ""});
}

}  // namespace ergometer
