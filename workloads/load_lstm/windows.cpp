#include "load_lstm/windows.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ergometer::workload::load_lstm {

Result<WindowSet> make_windows(const LoadData& data, const std::vector<Scale>& scales) {
  WindowSet set;
  set.scales = scales;
  for (const City& city : data.cities) {
    const auto scale =
        std::find_if(scales.begin(), scales.end(), [&](const Scale& candidate) { return candidate.city == city.name; });
    if (scale == scales.end()) {
      return Error{Fault::data, fmt::format("{}: the city '{}' is not in the training data", city.where, city.name),
                   "its load cannot be scaled: add it to train.csv, or remove it here"};
    }
    std::int64_t found = 0;
    for (const Run& run : city.runs) {
      const auto hours = static_cast<std::int64_t>(run.load.size());
      if (hours < kWindowHours) continue;
      WindowSet::ScaledRun scaled{static_cast<std::size_t>(scale - scales.begin()), run.first_hour, {}};
      scaled.load.reserve(run.load.size());
      for (const double load : run.load) {
        scaled.load.push_back(static_cast<float>((load - scale->minimum) / (scale->maximum - scale->minimum)));
      }
      for (std::int64_t offset = 0; offset + kWindowHours <= hours; ++offset) {
        set.windows.push_back({static_cast<std::uint32_t>(set.runs.size()), static_cast<std::uint32_t>(offset)});
        ++found;
      }
      set.runs.push_back(std::move(scaled));
    }
    set.left_out += std::max<std::int64_t>(0, city.last_hour - city.first_hour + 1 - kWindowHours + 1) - found;
  }
  if (set.windows.empty()) {
    return Error{Fault::data, fmt::format("{}: no city has {} hours without a gap", data.file, kWindowHours),
                 "a window is one week of input and the week to forecast"};
  }
  return set;
}

std::vector<std::pair<std::string, double>> baselines(const WindowSet& set, const std::vector<std::int64_t>& numbers) {
  double mean_predictor = 0;
  double last_week = 0;
  for (const std::int64_t number : numbers) {
    const Window& window = set.window(number);
    const float* input = set.values(window);
    const float* target = input + kInputHours;
    const double mean = set.scale(window).mean;
    for (std::int64_t hour = 0; hour < kForecastHours; ++hour) {
      const double from_mean = target[hour] - mean;
      const double from_week = static_cast<double>(target[hour]) - input[hour];
      mean_predictor += from_mean * from_mean;
      last_week += from_week * from_week;
    }
  }
  const auto count = static_cast<double>(numbers.size()) * static_cast<double>(kForecastHours);
  return {{"mean_predictor", mean_predictor / count}, {"last_week", last_week / count}};
}

}  // namespace ergometer::workload::load_lstm
