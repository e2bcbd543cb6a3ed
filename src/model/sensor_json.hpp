// SensorInfo as JSON, with the keys of node.json (docs/run-format.md). Used by store for node.json and by the daemon and
// its clients, which describe sensors in the same words.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "model/sensor_info.hpp"

namespace ergometer {

class JsonObject;

// What is missing or not finite is null.
[[nodiscard]] nlohmann::ordered_json sensor_to_json(const SensorInfo& sensor);
// A missing or null key stays unset; `object` keeps the complaint about a value of another kind or an unknown word.
[[nodiscard]] SensorInfo sensor_from_json(JsonObject& object);

}  // namespace ergometer
