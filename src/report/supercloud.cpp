#include "report/supercloud.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/number.hpp"
#include "report/trace_events.hpp"

namespace ergometer {
namespace {

constexpr std::int64_t kUsualDistances = 3;

struct CloudColumn {
  std::array<std::string_view, 3> ours;  // names in order of preference; "" for none
  double factor;
};
constexpr std::array kCloudColumns{
    CloudColumn{{"gpu_active_ratio", "sampled_gpu_active_ratio", ""}, 100},
    CloudColumn{{"memory_active_ratio", "sampled_memory_active_ratio", ""}, 100},
    CloudColumn{{"memory_free_bytes", "", ""}, 1.0 / (1 << 20)},
    CloudColumn{{"memory_used_bytes", "", ""}, 1.0 / (1 << 20)},
    CloudColumn{{"temperature_c", "gpu_temperature_c", ""}, 1},
    CloudColumn{{"memory_temperature_c", "", ""}, 1},
    CloudColumn{{"power_w", "power_average_w", "power_instant_w"}, 1},
    CloudColumn{{"pcie_link_width", "", ""}, 1}};
constexpr std::size_t kUtilisation = 0, kPower = 6;

// Where a column's values come from, and how old they may be.
struct Source {
  const Trace* trace = nullptr;
  std::size_t column = 0;
  std::int64_t oldest_ns = 0;
  std::size_t next = 0;  // first row later than the last one asked for
  std::optional<double> at(std::int64_t t) {
    if (!trace) return std::nullopt;
    while (next < trace->rows() && trace->t_ns[next] <= t) ++next;
    for (std::size_t row = next; row-- > 0 && t - trace->t_ns[row] <= oldest_ns;)
      if (const auto value = trace->columns[column][row]) return value;
    return std::nullopt;
  }
};

std::int64_t usual_distance(const Trace& trace) {
  std::vector<std::int64_t> distances;
  for (std::size_t i = 1; i < trace.rows() && i < 10000; ++i) distances.push_back(trace.t_ns[i] - trace.t_ns[i - 1]);
  if (distances.empty()) return 0;
  std::nth_element(distances.begin(), distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2), distances.end());
  return distances[distances.size() / 2];
}

Source source_of(const std::vector<const Trace*>& traces, const CloudColumn& column) {
  for (const auto name : column.ours) {
    if (name.empty()) break;
    for (const Trace* trace : traces)
      if (const auto at = trace->column(name)) return {trace, *at, kUsualDistances * usual_distance(*trace), 0};
  }
  return {};
}

}  // namespace

std::string supercloud_rows(const std::vector<const Trace*>& traces, int gpu_index, const std::vector<ClockPair>& clocks) {
  std::array<Source, kCloudColumns.size()> sources;
  for (std::size_t i = 0; i < sources.size(); ++i) sources[i] = source_of(traces, kCloudColumns[i]);
  const Trace* base = sources[kUtilisation].trace ? sources[kUtilisation].trace : sources[kPower].trace;
  std::string out;
  if (!base) return out;
  const TraceClock clock(clocks, 0);
  for (const std::int64_t t : base->t_ns) {
    const std::int64_t ns = clock.since_base_ns(t);
    out += fmt::format("{}.{:06},{}", ns / 1'000'000'000, ns % 1'000'000'000 / 1000, gpu_index);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      out += ',';
      if (const auto value = sources[i].at(t)) append_double(out, *value * kCloudColumns[i].factor);
    }
    out += '\n';
  }
  return out;
}

}  // namespace ergometer
