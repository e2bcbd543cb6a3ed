// A Summary as CSV: one row a region and domain, fixed columns with units in their names, missing values empty.
// Used by export --format csv.
#pragma once

#include <string>

#include "model/summary.hpp"

namespace ergometer {

[[nodiscard]] std::string summary_csv(const Summary& summary);

}  // namespace ergometer
