// Training samples: every 168 hours of a city with the 168 hours that follow, scaled. Used by training and inference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "load_lstm/load_lstm.hpp"
#include "load_lstm/series.hpp"

namespace ergometer::workload::load_lstm {

inline constexpr std::int64_t kInputHours = 168;
inline constexpr std::int64_t kForecastHours = 168;
inline constexpr std::int64_t kWindowHours = kInputHours + kForecastHours;

// How a city's load becomes 0..1: its minimum and maximum in the training data. `mean` is scaled, of the same data.
struct Scale {
  std::string city;
  double minimum = 0;
  double maximum = 1;
  double mean = 0.5;
};

// An error names a city whose load never changes: it cannot be scaled.
[[nodiscard]] Result<std::vector<Scale>> training_scales(const LoadData& train);

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
  // kWindowHours values: the input, then what is to be forecast.
  const float* values(const Window& window) const { return runs[window.run].load.data() + window.offset; }
  const Scale& scale(const Window& window) const { return scales[runs[window.run].scale]; }
};

// A run of n hours gives n - 335 windows. Errors: a city without a scale, no window at all.
[[nodiscard]] Result<WindowSet> make_windows(const LoadData& data, const std::vector<Scale>& scales);

// At most `count` of the windows, evenly spaced from the first on.
void thin_out(WindowSet& set, std::int64_t count);

// Mean squared errors of the two forecasts that need no training; `model` is left 0.
[[nodiscard]] Losses baselines(const WindowSet& set);

}  // namespace ergometer::workload::load_lstm
