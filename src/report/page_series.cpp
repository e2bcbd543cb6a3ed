#include "report/page_series.hpp"

#include <algorithm>

namespace ergometer {
namespace {

constexpr std::size_t kBins = 50;

std::string unit_of(const Channel& channel, SeriesRole role) {
  if (role == SeriesRole::power) return "W";
  if (role == SeriesRole::gauge) return channel.unit;
  if (channel.quantity == Quantity::duration) return "1";  // seconds by second
  return channel.unit.empty() ? "1/s" : channel.unit + "/s";
}

}  // namespace

PageSeries make_page_series(std::string node, std::string sensor, const Channel& channel, SeriesRole role,
                            const SeriesInput& input, const SeriesDetail& detail) {
  PageSeries out;
  out.node = std::move(node);
  out.sensor = std::move(sensor);
  out.channel = channel;
  out.role = role;
  out.unit = unit_of(channel, role);
  out.readings = input.t.size();
  out.usual_ns = input.usual_ns;
  if (input.t.empty()) return out;

  std::vector<double> corrected;
  std::span<const double> values = input.values;
  const double gain = channel.gain.value_or(1.0), offset_w = channel.offset_w.value_or(0.0);
  if (role == SeriesRole::power && (gain != 1.0 || offset_w != 0.0)) {
    corrected.reserve(values.size());
    for (const double v : values) corrected.push_back(gain * v + offset_w);
    values = corrected;
  }
  out.first_ns = input.t.front();
  out.last_ns = input.t.back();
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  out.lowest = *lowest;
  out.highest = *highest;
  out.mean = mean_over_time(input.t, values, input.gap_ns);
  out.points = thin(input.t, values, input.gap_ns, detail.buckets);
  const bool share = channel.quantity == Quantity::ratio && *out.lowest >= 0 && *out.highest <= 1;
  const double low = std::min(0.0, *out.lowest), high = share ? 1.0 : *out.highest;
  out.spread = spread_of_time(input.t, values, input.gap_ns, input.usual_ns, low, high > low ? high : low + 1, kBins);
  out.parts = part_means(input.t, values, detail.part_width_ns);
  return out;
}

}  // namespace ergometer
