#include "measure/requirements.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/text.hpp"
#include "device/registry.hpp"

namespace ergometer {
namespace {

// "rapl-perf" belongs to "rapl".
std::string_view family(std::string_view interface) { return interface.substr(0, interface.find('-')); }
// "gpu/0" is one of "gpu".
std::string_view kind(std::string_view domain) { return domain.substr(0, domain.find('/')); }

constexpr std::array<std::string_view, 9> kDomainKinds{"gpu",  "package", "dram", "module", "node",
                                                       "psys", "memory",  "tree", "system"};

bool is_domain_kind(std::string_view name) {
  return std::find(kDomainKinds.begin(), kDomainKinds.end(), kind(name)) != kDomainKinds.end();
}

bool met(std::string_view name, const SensorInfo& sensor) {
  if (name == sensor.name || name == sensor.interface || name == family(sensor.interface)) return true;
  return std::any_of(sensor.channels.begin(), sensor.channels.end(),
                     [&](const Channel& channel) { return name == channel.domain || name == kind(channel.domain); });
}

bool met(std::string_view name, const Discovery& found) {
  return std::any_of(found.sensors.begin(), found.sensors.end(),
                     [&](const auto& sensor) { return met(name, sensor->info()); });
}

std::vector<std::string> known_names(const Discovery& found) {
  std::vector<std::string> known = known_interfaces();
  known.insert(known.end(), kDomainKinds.begin(), kDomainKinds.end());
  for (const auto& sensor : found.sensors) {
    known.push_back(sensor->info().name);
    for (const auto& channel : sensor->info().channels) known.push_back(channel.domain);
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return known;
}

// Which interfaces could give a domain, for the reasons of its absence.
bool explains(std::string_view name, const Absence& absence) {
  const auto from = family(absence.interface);
  if (family(name) == from) return true;
  const auto domain = kind(name);
  if (domain == "gpu") return from == "nvml" || from == "amdgpu" || from == "intelgpu";
  if (domain == "memory") return from == "nvml";
  if (domain == "module" && from == "jetson") return true;
  if (domain == "package" || domain == "dram" || domain == "psys") return from == "rapl";
  if (domain == "node" && (from == "ipmi" || from == "redfish" || from == "meter")) return true;
  return domain == "module" || domain == "node" ? from == "hwmon" || from == "cray" : false;
}

Error missing(const std::string& name, const Discovery& found) {
  std::vector<std::string> reasons;
  std::string remedy;
  for (const auto& absence : found.node.absences) {
    if (!explains(name, absence)) continue;
    reasons.push_back(fmt::format("{}: {}: {}", absence.interface, absence.what, absence.reason));
    if (remedy.empty()) remedy = absence.remedy;
  }
  if (remedy.empty()) remedy = "see: ergometer doctor; or leave it out of --require";
  const std::string because = reasons.empty() ? "" : fmt::format(" ({})", fmt::join(reasons, "; "));
  return Error{ErrorCode::unavailable, fmt::format("required \"{}\" cannot be measured here{}", name, because), remedy};
}

// A sensor that exists and refuses us; the reasons are texts of the operating system and of our backends.
bool is_forbidden(const Absence& absence) {
  static constexpr std::array<std::string_view, 5> words{"permission", "not permitted", "paranoid", "forbidden",
                                                         "operation not allowed"};
  const std::string reason = lower(absence.reason);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return reason.find(word) != std::string::npos; });
}

}  // namespace

Result<void> check_requirements(const std::vector<std::string>& require, const Discovery& found) {
  const auto known = known_names(found);
  for (const auto& name : require) {
    if (met(name, found)) continue;
    if (is_domain_kind(name) || std::find(known.begin(), known.end(), name) != known.end())
      return tl::unexpected(missing(name, found));
    const auto nearest = nearest_name(name, known);
    return fail(ErrorCode::invalid_argument, fmt::format("unknown sensor \"{}\" in --require", name),
                nearest.empty() ? std::string("see the names with: ergometer sensors")
                                : fmt::format("did you mean \"{}\"? All names: ergometer sensors", nearest));
  }
  return {};
}

std::vector<Warning> absence_warnings(const Discovery& found) {
  std::vector<Warning> warnings;
  std::set<std::string, std::less<>> told;
  for (const auto& sensor : found.sensors) {
    // An interface that measures in one way need not in another: perf instead of powercap.
    const bool gives_energy = std::any_of(sensor->info().channels.begin(), sensor->info().channels.end(),
                                          [](const Channel& c) { return c.method && c.measured; });
    if (gives_energy) told.emplace(family(sensor->info().interface));
  }
  for (const auto& absence : found.node.absences) {
    const auto from = family(absence.interface);
    if (!is_forbidden(absence) || told.contains(from)) continue;
    told.emplace(from);
    const bool said = std::any_of(found.warnings.begin(), found.warnings.end(), [&](const Warning& w) {
      return w.message.find(absence.reason) != std::string::npos || w.message.find(absence.what) != std::string::npos;
    });
    if (said) continue;
    warnings.push_back({"sensor-missing", fmt::format("no {}: {}", absence.what, absence.reason), absence.remedy});
  }
  return warnings;
}

Environment recorded_environment(const Environment& environment) {
  static constexpr std::array<std::string_view, 12> prefixes{
      "CUDA_", "NVIDIA_", "HIP_", "ROCR_", "ZE_", "OMP_", "MKL_", "OPENBLAS_", "SLURM_", "PMI_",
      "OMPI_COMM_WORLD_",  // what else Open MPI sets is addresses and keys of this one launch
      "ERGOMETER_"};
  static constexpr std::array<std::string_view, 5> names{"RANK", "WORLD_SIZE", "LOCAL_RANK", "GPU_DEVICE_ORDINAL",
                                                         "ONEAPI_DEVICE_SELECTOR"};
  static constexpr std::array<std::string_view, 6> secrets{"KEY", "TOKEN", "JWT", "SECRET", "PASSW", "CREDENTIAL"};
  Environment kept;
  for (const auto& [name, value] : environment) {
    const auto starts = [&name = name](std::string_view prefix) { return name.starts_with(prefix); };
    const auto holds = [&name = name](std::string_view word) { return name.find(word) != std::string::npos; };
    const bool wanted = std::any_of(prefixes.begin(), prefixes.end(), starts) ||
                        std::find(names.begin(), names.end(), name) != names.end();
    if (wanted && std::none_of(secrets.begin(), secrets.end(), holds)) kept.emplace(name, value);
  }
  return kept;
}

}  // namespace ergometer
