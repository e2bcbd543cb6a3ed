// run.json, part.json and node.json as text (docs/run-format.md). Used by RunWriter and RunReader; the only place, with
// part_json.*, that knows the keys of the files.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/manifest.hpp"
#include "model/node.hpp"

namespace ergometer {

// Strict JSON with a final line end: what is missing or not finite is null; bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string manifest_to_json(const Manifest& manifest);
// The same keys under the schema of part.json: the manifest of one machine's part of a run.
[[nodiscard]] std::string part_to_json(const Manifest& part);
[[nodiscard]] std::string node_to_json(const Node& node);

// Unknown keys are ignored; a missing or null key is unset. Errors (corrupt) name `source`, the key and what was
// expected: text that is no JSON, another schema or version, a value of another kind.
[[nodiscard]] Result<Manifest> manifest_from_json(std::string_view text, const std::string& source);
[[nodiscard]] Result<Manifest> part_from_json(std::string_view text, const std::string& source);
[[nodiscard]] Result<Node> node_from_json(std::string_view text, const std::string& source);

}  // namespace ergometer
