// What the redfish backend reads out of the JSON documents of a controller. Pure; names as in DMTF's schemas Chassis,
// EnvironmentMetrics, PowerSubsystem, PowerSupplyMetrics and Power.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ergometer::redfish {

// Each value is positive and finite or unset: a null, a zero, a negative or another type is no reading.
struct Reading {
  std::optional<double> power_w, energy_j;
};

// A chassis and the documents that may tell its power; "" for those that it lacks.
struct Chassis {
  std::string id, type;
  bool has_system = false;   // holds a computer system
  std::string contained_by;  // path of the chassis around it
  std::string environment, subsystem, power;
};

// Errors of all: `corrupt` for what is no JSON object or lacks what makes it such a document. Paths that do not begin
// with "/" are left out.
[[nodiscard]] Result<std::vector<std::string>> parse_members(std::string_view body);
[[nodiscard]] Result<Chassis> parse_chassis(std::string_view body);
// The path behind KEY: {"@odata.id": PATH}; "" without one.
[[nodiscard]] Result<std::string> parse_link(std::string_view body, const char* key);
[[nodiscard]] Result<Reading> parse_environment(std::string_view body);     // PowerWatts, EnergykWh
[[nodiscard]] Result<Reading> parse_supply_metrics(std::string_view body);  // InputPowerWatts, EnergykWh
[[nodiscard]] Result<Reading> parse_power(std::string_view body);           // PowerControl[0].PowerConsumedWatts

}  // namespace ergometer::redfish
