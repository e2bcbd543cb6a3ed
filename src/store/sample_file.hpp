// Reads one sample file (docs/run-format.md, "Samples") into a Trace, past whatever is damaged in it. Used by
// RunReader; about 5 ns a character on one core, see benchmarks/store_bench.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/trace.hpp"
#include "model/warning.hpp"

namespace ergometer {

// `content` is the whole file: frames if `compressed`, else text. `info` describes the sensor as in node.json; without
// it channels are inferred from `sensor` and the columns. `source` names the file in messages. The trace has the
// file's columns, in the file's order. Damage of any kind is left out, counted and appended to `warnings`.
// Error: a file without a header whose columns are not known otherwise.
[[nodiscard]] Result<Trace> parse_samples(std::string_view content, bool compressed, const std::string& sensor,
                                          const SensorInfo* info, const std::string& source,
                                          std::vector<Warning>& warnings);

// Time of the last row of a sample file, without reading the rest; nullopt if there is none.
[[nodiscard]] std::optional<std::int64_t> last_sample_ns(std::string_view content, bool compressed);

}  // namespace ergometer
