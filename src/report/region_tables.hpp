// The text report's tables of regions: by epoch, by phase, by domain. Used by render_text.
#pragma once

#include <string>

#include "model/summary.hpp"
#include "report/text.hpp"

namespace ergometer {

// The tables with a title each and a blank line before; empty if the summary has no regions.
[[nodiscard]] std::string region_tables(const Summary& summary, const TextOptions& options);

}  // namespace ergometer
