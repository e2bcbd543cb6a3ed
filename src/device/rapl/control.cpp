#include "device/rapl/control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/text.hpp"
#include "device/file_control.hpp"
#include "device/rapl/powercap.hpp"

namespace ergometer {
namespace {
namespace fs = std::filesystem;
using namespace rapl;

constexpr double kMicrowatts = 1e6;
// Limits are kept in the processor's power unit, at most 1/8 W (power unit field of MSR 0x606).
constexpr double kUnit = 0.125;

struct LimitFile {
  const char* constraint;  // its name in the kernel
  const char* knob;
};
constexpr std::array<LimitFile, 2> kLimits{{{"long_term", "power"}, {"short_term", "short-power"}}};

// The number I of constraint_I_name that holds `name`.
std::optional<int> constraint_number(const fs::path& folder, std::string_view name) {
  for (int i = 0; i < 3; ++i)
    if (trimmed_text(folder / fmt::format("constraint_{}_name", i)) == name) return i;
  return std::nullopt;
}

// The lowest limit of this kind among the enabled zones of one domain: that one holds. If none is enabled, nothing
// limits, and the zone's own value is all there is to tell.
Result<ControlValue> lowest_enabled(const std::vector<fs::path>& zones, const char* constraint, const fs::path& own) {
  std::optional<double> lowest;
  for (const auto& zone : zones) {
    const auto number = constraint_number(zone, constraint);
    if (!number || trimmed_text(zone / "enabled") == "0") continue;
    const auto watts = file_number(zone / fmt::format("constraint_{}_power_limit_uw", *number), kMicrowatts);
    if (watts && (!lowest || *watts < *lowest)) lowest = watts;
  }
  if (!lowest) lowest = file_number(own, kMicrowatts);
  if (!lowest) return fail(ErrorCode::unavailable, own.string() + " has no limit now");
  return ControlValue(Watts(*lowest));
}

void add_limit(const ZoneFolder& zone, const std::string& prefix, const LimitFile& limit,
               const std::vector<fs::path>& of_domain, bool can_enable, ControlDiscovery& out) {
  const auto number = constraint_number(zone.folder, limit.constraint);
  if (!number) return;
  const auto file = zone.folder / fmt::format("constraint_{}_power_limit_uw", *number);
  if (!file_number(file, kMicrowatts)) return;
  ControlInfo info;
  info.name = prefix + limit.knob;
  info.backend = "rapl";
  info.device_id = zone.id;
  info.device_name = zone.name;
  info.resolution = kUnit;
  info.rank = 4;
  const auto low = file_number(zone.folder / fmt::format("constraint_{}_min_power_uw", *number), kMicrowatts);
  const auto high = file_number(zone.folder / fmt::format("constraint_{}_max_power_uw", *number), kMicrowatts);
  info.lowest = Watts(low.value_or(0) > 0 ? *low : 1);
  // Firmware may have set more than the maximum that the kernel names.
  if (high && *high > 0) info.highest = Watts(std::max(*high, file_number(file, kMicrowatts).value_or(0)));
  // The maximum of the long-term limit is the processor's thermal design power, with which it starts.
  if (std::string_view(limit.knob) == "power" && info.highest) info.default_value = Watts(*high);
  if (can_enable) info.needs.emplace_back(prefix + "enabled", std::string("on"));
  const char* constraint = limit.constraint;
  out.controls.push_back(std::make_shared<FileControl>(
      std::move(info), file, FileFormat{kMicrowatts},
      [of_domain, constraint, file] { return lowest_enabled(of_domain, constraint, file); }));
}

bool add_enabled(const ZoneFolder& zone, const std::string& prefix, ControlDiscovery& out) {
  const auto file = zone.folder / "enabled";
  if (!file_number(file, 1)) return false;
  ControlInfo info;
  info.name = prefix + "enabled";
  info.backend = "rapl";
  info.device_id = zone.id;
  info.device_name = zone.name;
  info.unit = ControlUnit::word;
  info.choices = {std::string("off"), std::string("on")};
  info.rank = 5;  // after its limit, so that a former limit never holds in between
  out.controls.push_back(std::make_shared<FileControl>(std::move(info), file, FileFormat{1, true}));
  return true;
}

}  // namespace

void find_rapl_controls(const HostRoot& root, ControlDiscovery& out) {
  const auto zones = zone_folders(root);
  std::map<std::string, std::vector<fs::path>> by_domain;
  for (const auto& zone : zones) by_domain[domain_name(zone.domain)].push_back(zone.folder);
  const auto before = out.controls.size();
  for (const auto& zone : zones) {
    const auto domain = domain_name(zone.domain);
    const auto prefix = domain + (zone.id.starts_with("intel-rapl-mmio") ? "/mmio-" : "/");
    const auto known = [&](const auto& control) { return control->describe().name == prefix + "enabled"; };
    if (zone.domain.kind == Kind::unknown || std::ranges::any_of(out.controls, known)) continue;
    const bool can_enable = add_enabled(zone, prefix, out);
    for (const auto& limit : kLimits) add_limit(zone, prefix, limit, by_domain[domain], can_enable, out);
  }
  if (out.controls.size() == before)
    out.absences.push_back({"rapl", "power limits of the processor",
                            "no zone with a limit in " + root.path("/sys/class/powercap").string(),
                            "sudo modprobe intel_rapl_msr; AMD processors and virtual machines have no such limit"});
}

}  // namespace ergometer
