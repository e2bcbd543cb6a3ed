// The keys of run.json and part.json that only a run over several nodes has: parts, place, ranks, clock
// (docs/run-format.md). Used by run_json.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "model/manifest.hpp"

namespace ergometer {

class JsonObject;

// Adds the keys that the manifest has; the manifest of a run on one node has none of them.
void add_part_keys(nlohmann::ordered_json& json, const Manifest& manifest);
// Entries that lack what gives them their meaning (an offset's time) are left out.
void read_part_keys(JsonObject& object, Manifest& manifest);

}  // namespace ergometer
