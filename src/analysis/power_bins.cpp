#include "analysis/power_bins.hpp"

#include "analysis/arithmetic.hpp"
#include "analysis/curve.hpp"
#include "analysis/series.hpp"

namespace ergometer {

std::vector<std::optional<double>> power_bins(const Trace& trace, std::size_t column, std::int64_t begin_ns,
                                              std::int64_t end_ns, std::size_t count) {
  constexpr double kLeastCovered = 0.5;
  std::vector<std::optional<double>> out(count);
  const Channel& channel = trace.info.channels[column];
  const Series series(trace, column, false);
  if (series.size() == 0 || end_ns <= begin_ns || count == 0) return out;
  CurveOptions options;
  options.gap_ns = gap_limit(trace.info, channel, series.usual_ns());
  options.uncertain = false;
  const Curve curve = channel.behaviour == Behaviour::counter
                          ? Curve::of_counter(series, {channel.range, channel.max_power_w}, options)
                          : Curve::of_gauge(series, options);
  std::size_t hint = 0;
  const double length = static_cast<double>(end_ns - begin_ns) / static_cast<double>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = begin_ns + static_cast<std::int64_t>(length * static_cast<double>(i));
    const auto to = begin_ns + static_cast<std::int64_t>(length * static_cast<double>(i + 1));
    const Share share = curve.between(from, to, hint);
    const double length_s = static_cast<double>(to - from) / kNsPerS;
    if (share.covered_s > 0 && share.covered_s >= kLeastCovered * length_s) out[i] = share.amount / share.covered_s;
  }
  return out;
}

}  // namespace ergometer
