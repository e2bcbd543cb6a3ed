// Mean power over time of a run's domains, for the sparklines of `show`.
#pragma once

#include <vector>

#include "library/load_run.hpp"
#include "report/text.hpp"

namespace ergometer::cli {

// A line for each measured domain of the total whose readings can be read again; none for runs without beginning and end.
[[nodiscard]] std::vector<PowerLine> power_lines(const std::filesystem::path& dir, const LoadedRun& run, std::size_t parts);

}  // namespace ergometer::cli
