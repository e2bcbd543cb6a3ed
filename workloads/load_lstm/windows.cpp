#include "load_lstm/windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

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

void thin_out(WindowSet& set, std::int64_t count) {
  const std::int64_t all = set.size();
  if (count >= all) return;
  std::vector<Window> kept;
  kept.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) kept.push_back(set.windows[static_cast<std::size_t>(i * all / count)]);
  set.windows = std::move(kept);
}

Losses baselines(const WindowSet& set) {
  Losses losses;
  for (const Window& window : set.windows) {
    const float* input = set.values(window);
    const float* target = input + kInputHours;
    const double mean = set.scale(window).mean;
    for (std::int64_t hour = 0; hour < kForecastHours; ++hour) {
      const double from_mean = target[hour] - mean;
      const double from_week = static_cast<double>(target[hour]) - input[hour];
      losses.mean_predictor += from_mean * from_mean;
      losses.last_week += from_week * from_week;
    }
  }
  const double count = static_cast<double>(set.size() * kForecastHours);
  losses.mean_predictor /= count;
  losses.last_week /= count;
  return losses;
}

}  // namespace ergometer::workload::load_lstm
