// How each city's load becomes 0..1, and back. Made from the training data, kept in checkpoints, used by windows.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "load_lstm/series.hpp"

namespace ergometer::workload::load_lstm {

// `minimum` and `maximum` are those of the training data; `mean` is scaled, of the same data.
struct Scale {
  std::string city;
  double minimum = 0;
  double maximum = 1;
  double mean = 0.5;
};

// An error names a city whose load never changes: it cannot be scaled.
[[nodiscard]] Result<std::vector<Scale>> training_scales(const LoadData& train);

// A line a city, "MINIMUM MAXIMUM MEAN CITY"; numbers come back as they were.
[[nodiscard]] std::string to_text(const std::vector<Scale>& scales);
[[nodiscard]] Result<std::vector<Scale>> parse_scales(std::string_view text);

}  // namespace ergometer::workload::load_lstm
