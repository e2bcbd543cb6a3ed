#include "device/procfs/components.hpp"

#include <algorithm>
#include <system_error>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {
namespace fs = std::filesystem;

bool has(const fs::path& path) {
  std::error_code ec;
  return fs::exists(path, ec);
}

void add_devices(const fs::path& top, const char* kind, std::vector<Component>& out) {
  for (const auto& name : list_dir(top)) {
    const auto device = top / name / "device";
    if (!has(device)) continue;
    auto model = short_text(device / "model");
    if (model.empty()) {
      const auto vendor = short_text(device / "vendor"), number = short_text(device / "device");
      if (!vendor.empty() && !number.empty()) model = "PCI " + vendor + ":" + number;
    }
    out.push_back({kind, name, std::move(model)});
  }
}

// fanN_input of any chip; its value is not read, which may take milliseconds on a slow bus.
void add_fans(const fs::path& top, std::vector<Component>& out) {
  for (const auto& entry : list_dir(top)) {
    const auto chip = top / entry;
    for (const auto& file : list_dir(chip)) {
      if (!file.starts_with("fan") || !file.ends_with("_input")) continue;
      const auto number = file.substr(3, file.size() - 9);
      if (!parse_uint(number)) continue;
      const auto label = short_text(chip / ("fan" + number + "_label"));
      out.push_back({"fan", short_text(chip / "name") + " " + (label.empty() ? "fan" + number : label), ""});
    }
  }
}

void add_supplies(const fs::path& top, std::vector<Component>& out) {
  for (const auto& name : list_dir(top)) {
    const auto type = short_text(top / name / "type");
    // What hangs on a mouse or a pen has scope "Device".
    if (short_text(top / name / "scope") == "Device") continue;
    if (type == "Mains") out.push_back({"supply", name, short_text(top / name / "model_name")});
    if (type == "Battery") out.push_back({"battery", name, short_text(top / name / "model_name")});
  }
}

}  // namespace

void discover_components(const Host& host, const DiscoverOptions& /*options*/, Discovery& out) {
  auto& found = out.node.components;
  add_devices(host.root.path("/sys/class/net"), "nic", found);
  add_devices(host.root.path("/sys/block"), "disk", found);
  add_fans(host.root.path("/sys/class/hwmon"), found);
  add_supplies(host.root.path("/sys/class/power_supply"), found);
  std::ranges::stable_sort(found, {}, [](const Component& c) { return std::pair(c.kind, c.name); });
}

}  // namespace ergometer
