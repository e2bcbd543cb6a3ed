// The load of each city as read from a CSV file: unbroken runs of hours. Used by windows.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace ergometer::workload::load_lstm {

// Consecutive hours that all have a load.
struct Run {
  std::int64_t first_hour = 0;  // since 1970-01-01 00:00
  std::vector<double> load;     // in the unit of the file
};

struct City {
  std::string name;
  std::string where;            // FILE:LINE of its first row
  std::int64_t first_hour = 0;  // of all its rows, also those without a load
  std::int64_t last_hour = 0;
  std::vector<Run> runs;
};

struct LoadData {
  std::string file;
  std::vector<City> cities;        // in the order of the file
  std::vector<std::string> notes;  // one a city with missing hours: how many, and where the first is
};

// Reads a CSV with a time, a city (or `Country`) and a load column (`Load [MWh]` or `Load [MW]`), in any order, among
// others. The hours of a city ascend; cities may alternate. A missing hour, an empty load or NaN ends a run and is
// noted, or is an error if `strict`. Errors name file and line: no header, no such column, a time that is no whole
// hour, a load that is no number, an hour twice or out of order.
[[nodiscard]] Result<LoadData> read_load(const std::string& path, bool strict);

}  // namespace ergometer::workload::load_lstm
