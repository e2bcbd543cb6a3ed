// Samples: every 168 hours of a city with the 168 hours that follow, scaled. Used by data.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "load_lstm/scales.hpp"
#include "load_lstm/series.hpp"

namespace ergometer::workload::load_lstm {

inline constexpr std::int64_t kInputHours = 168;
inline constexpr std::int64_t kForecastHours = 168;
inline constexpr std::int64_t kWindowHours = kInputHours + kForecastHours;

struct Window {
  std::uint32_t run = 0;
  std::uint32_t offset = 0;  // hours from the run's start
};

struct WindowSet {
  struct ScaledRun {
    std::size_t scale = 0;  // index into scales
    std::int64_t first_hour = 0;
    std::vector<float> load;
  };
  std::vector<Scale> scales;
  std::vector<ScaledRun> runs;
  std::vector<Window> windows;
  std::int64_t left_out = 0;  // windows that touch a missing hour

  std::int64_t size() const { return static_cast<std::int64_t>(windows.size()); }
  const Window& window(std::int64_t number) const { return windows[static_cast<std::size_t>(number)]; }
  // kWindowHours values: the input, then what is to be forecast.
  const float* values(const Window& window) const { return runs[window.run].load.data() + window.offset; }
  const Scale& scale(const Window& window) const { return scales[runs[window.run].scale]; }
};

// A run of n hours gives n - 335 windows. Errors: a city without a scale, no window at all.
[[nodiscard]] Result<WindowSet> make_windows(const LoadData& data, const std::vector<Scale>& scales);

// Mean squared errors, over the windows of these numbers, of two forecasts that need no training: `mean_predictor`
// forecasts the city's mean training load for every hour, `last_week` that the load of 168 hours ago comes again.
[[nodiscard]] std::vector<std::pair<std::string, double>> baselines(const WindowSet& set,
                                                                    const std::vector<std::int64_t>& numbers);

}  // namespace ergometer::workload::load_lstm
