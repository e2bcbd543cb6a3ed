// A run as trace events for ui.perfetto.dev or chrome://tracing: power and utilisation as counters, regions as slices. Times
// are of the calendar, as a PyTorch profiler trace has them, so that both lie on one axis. Used by export --format perfetto.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/manifest.hpp"
#include "model/region.hpp"
#include "model/trace.hpp"

namespace ergometer {

// Maps monotonic time to microseconds since `base_ns` (nanoseconds since 1970), between and beyond the run's clock pairs.
class TraceClock {
 public:
  TraceClock(std::vector<ClockPair> clocks, std::int64_t base_ns) : clocks_(std::move(clocks)), base_ns_(base_ns) {}
  [[nodiscard]] std::int64_t since_base_ns(std::int64_t mono) const;
  // "1234.567"
  [[nodiscard]] std::string microseconds(std::int64_t mono) const;

 private:
  std::vector<ClockPair> clocks_;
  std::int64_t base_ns_;
};

// Each appends events, each followed by ",\n". `process` is a number of its own for each node.
void append_process(std::string& out, int process, std::string_view name);
// Gauges as they are; energy counters as the mean power between readings. Rows [begin, end).
void append_counters(std::string& out, const Trace& trace, int process, const TraceClock& clock, std::size_t begin,
                     std::size_t end);
// Under the process and thread that marked them, as a profiler of the same program names them.
void append_slices(std::string& out, const std::vector<Region>& regions, const TraceClock& clock);

// A trace of the PyTorch profiler into which a run's events can be put.
struct TorchTrace {
  std::int64_t base_ns = 0;    // its baseTimeNanoseconds; 0 where times are since 1970
  std::size_t insert_at = 0;   // behind the '[' of its traceEvents
  bool has_events = false;
};
// Error (corrupt) names `source`: no JSON, or no traceEvents.
[[nodiscard]] Result<TorchTrace> inspect_torch_trace(std::string_view text, const std::string& source);

}  // namespace ergometer
