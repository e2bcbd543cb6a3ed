// A finished run as OpenMetrics text (https://openmetrics.io), for a push gateway or a file collector. Used by export
// --format openmetrics.
#pragma once

#include <string>

#include "model/manifest.hpp"
#include "model/summary.hpp"

namespace ergometer {

// Only what is known has a line: OpenMetrics has no word for a missing value. Ends with "# EOF".
[[nodiscard]] std::string summary_openmetrics(const Manifest& manifest, const Summary& summary);

}  // namespace ergometer
