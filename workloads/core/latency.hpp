// Durations of equal pieces of work and their percentiles. Used by the inference of every workload.
#pragma once

#include <string>
#include <vector>

namespace ergometer::workload {

// The value below or at which a share of the values lies (0..1), interpolated linearly between ranks as NumPy's default
// does. `values` need not be sorted and is not empty.
[[nodiscard]] double percentile(std::vector<double> values, double share);

// "p50 3.1 ms, p90 3.4 ms, p99 5.0 ms" of durations in seconds; not empty.
[[nodiscard]] std::string describe_latency(const std::vector<double>& seconds);

}  // namespace ergometer::workload
