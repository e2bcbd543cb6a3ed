// Mean power of equal parts of a run, for small pictures of it. Used by `show`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/trace.hpp"

namespace ergometer {

// Mean power in W of each of `count` parts of [begin, end), from a power gauge or energy counter `column`; unset where
// readings cover less than half of a part. O(rows).
[[nodiscard]] std::vector<std::optional<double>> power_bins(const Trace& trace, std::size_t column, std::int64_t begin_ns,
                                                            std::int64_t end_ns, std::size_t count);

}  // namespace ergometer
