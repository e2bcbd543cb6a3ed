// A run's GPUs in the column form of the MIT Supercloud data set. Used by export --format supercloud.
#pragma once

#include <string>
#include <vector>

#include "model/manifest.hpp"
#include "model/trace.hpp"

namespace ergometer {

inline constexpr const char* kSupercloudHeader =
    "timestamp,gpu_index,utilization_gpu_pct,utilization_memory_pct,memory_free_MiB,memory_used_MiB,temperature_gpu,"
    "temperature_memory,power_draw_W,pcie_link_width_current\n";

// Rows of one GPU from its sensors' traces, at the times of the one with the utilisation (else the power); what another
// sensor reads is its newest value, unless that is older than three of its usual distances. Times are Unix seconds where
// `clocks` tells them, else seconds of the monotonic clock. Missing values are empty.
[[nodiscard]] std::string supercloud_rows(const std::vector<const Trace*>& traces, int gpu_index,
                                          const std::vector<ClockPair>& clocks);

}  // namespace ergometer
