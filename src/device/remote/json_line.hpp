// What both files of the protocol say alike: a JSON object as a line, and the daemon's error in an answer. The JSON
// library stays inside this folder's sources.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_object.hpp"
#include "base/result.hpp"

namespace ergometer::remote {

[[nodiscard]] std::string line_of(const nlohmann::ordered_json& json);
// The error in an answer, if it is one.
void read_error(JsonObject& object, std::optional<Error>& out);
[[nodiscard]] tl::unexpected<Error> not_understood();

}  // namespace ergometer::remote
