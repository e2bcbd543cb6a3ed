#include "device/drm_card.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace fs = std::filesystem;

std::optional<double> positive_micro(const fs::path& file) {
  const auto value = parse_int(short_text(file));
  return value && *value > 0 ? std::optional(static_cast<double>(*value) / 1e6) : std::nullopt;
}

std::vector<DrmCard> drm_cards(const HostRoot& root, std::string_view driver) {
  std::vector<DrmCard> cards;
  const auto top = root.path("/sys/class/drm");
  for (const auto& entry : list_dir(top)) {
    const auto number = entry.starts_with("card") ? parse_uint(std::string_view(entry).substr(4)) : std::nullopt;
    if (!number || *number > 1 << 16) continue;
    DrmCard card;
    card.number = static_cast<int>(*number);
    card.folder = top / entry;
    card.device = card.folder / "device";
    std::string found;
    const auto uevent = read_file(card.device / "uevent", 1 << 16);
    for (const auto line : split(uevent ? std::string_view(*uevent) : std::string_view{}, '\n')) {
      const auto equals = line.find('=');
      if (equals == std::string_view::npos) continue;
      const auto key = line.substr(0, equals);
      const auto value = std::string(trim(line.substr(equals + 1)).substr(0, 64));
      if (key == "DRIVER") found = value;
      if (key == "PCI_SLOT_NAME") card.pci_bus_id = value;
      if (key == "PCI_ID") card.pci_id = value;
    }
    if (found == driver && !card.pci_bus_id.empty()) cards.push_back(std::move(card));
  }
  std::ranges::sort(cards, {}, &DrmCard::pci_bus_id);
  return cards;
}

std::vector<fs::path> hwmon_folders(const fs::path& device) {
  std::vector<fs::path> folders;
  for (const auto& entry : list_dir(device / "hwmon"))
    if (entry.starts_with("hwmon")) folders.push_back(device / "hwmon" / entry);
  return folders;
}

bool nvidia_driver_loaded(const HostRoot& root) {
  std::error_code ec;
  return fs::exists(root.path("/sys/module/nvidia"), ec) || fs::exists(root.path("/proc/driver/nvidia"), ec);
}

Channel card_channel(const GpuInfo& gpu, std::string column, Quantity quantity, std::string unit) {
  Channel c;
  c.column = std::move(column);
  c.quantity = quantity;
  c.unit = std::move(unit);
  c.domain = fmt::format("gpu/{}", gpu.index);
  c.device = gpu.uuid;
  c.scope = Scope::gpu;
  return c;
}

}  // namespace ergometer
