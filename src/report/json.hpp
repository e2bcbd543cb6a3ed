// A Summary as JSON, schema "ergometer.summary/1" (docs/run-format.md). Used by show --json and for summary.json.
#pragma once

#include <string>

#include "model/summary.hpp"

namespace ergometer {

// Strict JSON with a final line end: what is unknown or not finite is null. Deterministic: the same summary gives the
// same bytes.
[[nodiscard]] std::string summary_json(const Summary& summary);

}  // namespace ergometer
