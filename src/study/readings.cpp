#include "study/readings.hpp"

#include <algorithm>

#include "store/run_reader.hpp"

namespace ergometer {
namespace {

void add_value(ChannelReadings& channel, double value) {
  if (channel.count++ == 0) {
    channel.first = channel.lowest = channel.highest = value;
  }
  channel.last = value;
  channel.lowest = std::min(channel.lowest, value);
  channel.highest = std::max(channel.highest, value);
  channel.sum += value;
}

void add_trace(const Trace& trace, std::int64_t begin, std::int64_t end, RunReadings& out) {
  for (std::size_t c = 0; c < trace.columns.size(); ++c) {
    const auto& info = trace.info.channels[c];
    auto& channel = out[info.domain + "/" + info.column];
    channel.quantity = info.quantity;
    channel.behaviour = info.behaviour;
    channel.scope = info.scope;
    channel.method = info.method;
    channel.in_total = info.in_total;
    channel.measured = info.measured;
    auto from = std::ranges::lower_bound(trace.t_ns, begin) - trace.t_ns.begin();
    auto to = std::ranges::upper_bound(trace.t_ns, end) - trace.t_ns.begin();
    // A counter's growth is known by the readings around the interval.
    if (info.behaviour == Behaviour::counter) {
      from = std::max<std::ptrdiff_t>(from - 1, 0);
      to = std::min<std::ptrdiff_t>(to + 1, static_cast<std::ptrdiff_t>(trace.rows()));
    }
    for (auto row = static_cast<std::size_t>(from); row < static_cast<std::size_t>(to); ++row)
      if (const auto value = trace.columns[c][row]) add_value(channel, *value);
  }
}

}  // namespace

Result<RunReadings> read_readings(const std::filesystem::path& run) {
  auto reader = RunReader::open(run);
  if (!reader) return tl::unexpected(reader.error());
  RunReadings readings;
  const auto& manifest = reader->manifest();
  if (reader->nodes().empty() || !manifest.begin || !manifest.end) return readings;
  const auto& node = reader->nodes().front().name;
  for (const auto& sensor : reader->sensors(node))
    if (const auto trace = reader->samples(node, sensor))
      add_trace(*trace, to_ns(*manifest.begin), to_ns(*manifest.end), readings);
  return readings;
}

}  // namespace ergometer
