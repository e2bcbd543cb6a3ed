// run.json and node.json as text (docs/run-format.md). Used by RunWriter and RunReader; the only place that knows the
// keys of the two files.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/manifest.hpp"
#include "model/node.hpp"

namespace ergometer {

// Strict JSON with a final line end: what is missing or not finite is null; bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string manifest_to_json(const Manifest& manifest);
[[nodiscard]] std::string node_to_json(const Node& node);

// Unknown keys are ignored; a missing or null key is unset. Errors (corrupt) name `source`, the key and what was
// expected: text that is no JSON, another schema or version, a value of another kind.
[[nodiscard]] Result<Manifest> manifest_from_json(std::string_view text, const std::string& source);
[[nodiscard]] Result<Node> node_from_json(std::string_view text, const std::string& source);

}  // namespace ergometer
