#include "core/latency.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ergometer::workload {

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double rank = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (rank - static_cast<double>(below)) * (values[above] - values[below]);
}

std::string describe_latency(const std::vector<double>& seconds) {
  return fmt::format("p50 {:.2f} ms, p90 {:.2f} ms, p99 {:.2f} ms", percentile(seconds, 0.5) * 1e3,
                     percentile(seconds, 0.9) * 1e3, percentile(seconds, 0.99) * 1e3);
}

}  // namespace ergometer::workload
