#include "load_lstm/scales.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/text.hpp"

namespace ergometer::workload::load_lstm {

Result<std::vector<Scale>> training_scales(const LoadData& train) {
  std::vector<Scale> scales;
  for (const City& city : train.cities) {
    double minimum = std::numeric_limits<double>::infinity();
    double maximum = -minimum;
    double sum = 0;
    double count = 0;
    for (const Run& run : city.runs) {
      for (const double load : run.load) {
        minimum = std::min(minimum, load);
        maximum = std::max(maximum, load);
        sum += load;
        ++count;
      }
    }
    if (!(minimum < maximum)) {
      return Error{Fault::data,
                   fmt::format("{}: {} {}", city.where, city.name,
                               count > 0 ? "has the same load in every hour" : "has no load in any hour"),
                   "a city is scaled by its smallest and largest training load: remove it, or give it real data"};
    }
    scales.push_back({city.name, minimum, maximum, (sum / count - minimum) / (maximum - minimum)});
  }
  return scales;
}

std::string to_text(const std::vector<Scale>& scales) {
  std::string text;
  for (const Scale& scale : scales) {  // fmt writes the shortest text that reads back as the same double
    text += fmt::format("{} {} {} {}\n", scale.minimum, scale.maximum, scale.mean, scale.city);
  }
  return text;
}

Result<std::vector<Scale>> parse_scales(std::string_view text) {
  std::vector<Scale> scales;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::array<double, 3> numbers{};
    for (double& number : numbers) {
      const std::size_t space = std::min(line.find(' '), line.size());
      const auto parsed = parse_number(line.substr(0, space));
      if (!parsed) return Error{Fault::data, "the checkpoint's scales of the cities are damaged", "train again"};
      number = *parsed;
      line.remove_prefix(std::min(space + 1, line.size()));
    }
    scales.push_back({std::string(line), numbers[0], numbers[1], numbers[2]});
  }
  return scales;
}

}  // namespace ergometer::workload::load_lstm
