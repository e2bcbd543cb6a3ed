#include "device/redfish/documents.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace ergometer::redfish {
namespace {

using nlohmann::json;

constexpr double kJoulesPerKwh = 3.6e6;
constexpr double kMostWatts = 1e6;  // of one chassis; above it is damage
constexpr std::size_t kMostMembers = 64;

Result<json> object_of(std::string_view body) {
  auto document = json::parse(body, nullptr, false);
  if (!document.is_object()) return fail(ErrorCode::corrupt, "the answer is no JSON object");
  return document;
}

// A number, bare or as {"Reading": number}.
std::optional<double> number(const json& object, const char* key) {
  auto it = object.find(key);
  if (it == object.end()) return std::nullopt;
  const json* value = &*it;
  if (value->is_object()) {
    const auto reading = value->find("Reading");
    if (reading == value->end()) return std::nullopt;
    value = &*reading;
  }
  if (!value->is_number()) return std::nullopt;
  const double n = value->get<double>();
  return std::isfinite(n) && n > 0 ? std::optional(n) : std::nullopt;
}

std::optional<double> watts(const json& object, const char* key) {
  const auto n = number(object, key);
  return n && *n <= kMostWatts ? n : std::nullopt;
}

std::optional<double> joules(const json& object) {
  const auto kwh = number(object, "EnergykWh");
  return kwh ? std::optional(*kwh * kJoulesPerKwh) : std::nullopt;
}

std::string text(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::string path_in(const json& value) {
  if (!value.is_object()) return {};
  auto path = text(value, "@odata.id");
  return path.starts_with('/') && path.find_first_of(" \r\n") == std::string::npos ? path : std::string();
}

std::string link(const json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() ? std::string() : path_in(*it);
}

}  // namespace

Result<std::vector<std::string>> parse_members(std::string_view body) {
  const auto document = object_of(body);
  if (!document) return tl::unexpected(document.error());
  const auto members = document->find("Members");
  if (members == document->end() || !members->is_array())
    return fail(ErrorCode::corrupt, "a collection without Members");
  std::vector<std::string> paths;
  for (const auto& member : *members)
    if (auto path = path_in(member); !path.empty() && paths.size() < kMostMembers) paths.push_back(std::move(path));
  return paths;
}

Result<Chassis> parse_chassis(std::string_view body) {
  const auto document = object_of(body);
  if (!document) return tl::unexpected(document.error());
  Chassis out;
  out.id = text(*document, "Id");
  out.type = text(*document, "ChassisType");
  out.environment = link(*document, "EnvironmentMetrics");
  out.subsystem = link(*document, "PowerSubsystem");
  out.power = link(*document, "Power");
  const auto links = document->find("Links");
  if (links != document->end() && links->is_object()) {
    const auto systems = links->find("ComputerSystems");
    out.has_system = systems != links->end() && systems->is_array() && !systems->empty();
    out.contained_by = link(*links, "ContainedBy");
  }
  return out;
}

Result<std::string> parse_link(std::string_view body, const char* key) {
  const auto document = object_of(body);
  if (!document) return tl::unexpected(document.error());
  return link(*document, key);
}

Result<Reading> parse_environment(std::string_view body) {
  const auto document = object_of(body);
  if (!document) return tl::unexpected(document.error());
  return Reading{watts(*document, "PowerWatts"), joules(*document)};
}

Result<Reading> parse_supply_metrics(std::string_view body) {
  const auto document = object_of(body);
  if (!document) return tl::unexpected(document.error());
  return Reading{watts(*document, "InputPowerWatts"), joules(*document)};
}

Result<Reading> parse_power(std::string_view body) {
  const auto document = object_of(body);
  if (!document) return tl::unexpected(document.error());
  const auto controls = document->find("PowerControl");
  if (controls == document->end() || !controls->is_array())
    return fail(ErrorCode::corrupt, "a Power document without PowerControl");
  // The first one is the chassis as a whole; further ones are parts of it.
  if (controls->empty() || !controls->front().is_object()) return Reading{};
  return Reading{watts(controls->front(), "PowerConsumedWatts"), std::nullopt};
}

}  // namespace ergometer::redfish
