#include "calibrate_meter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "calibrate_result.hpp"
#include "meter_file.hpp"
#include "report/table.hpp"
#include "report/units.hpp"

namespace ergometer::cli {
namespace {

constexpr double kLeastGain = 0.5, kMostGain = 2;  // beyond, no sensor is wrong but a unit
constexpr std::size_t kMeterWidth = 120;

Result<void> check_domain(const MeterOptions& options, const RunReader& reader) {
  std::set<std::string> domains;
  for (const auto& node : reader.nodes())
    for (const auto& sensor : node.sensors)
      for (const auto& channel : sensor.channels)
        if (gives_power(channel)) domains.insert(channel.domain);
  if (domains.contains(options.domain)) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("the record has no measured power of \"{}\" to hold the meter against", options.domain),
              fmt::format("say with --meter-of what the meter measures; there are: {}", fmt::join(domains, ", ")));
}

}  // namespace

Result<MeterReadings> read_meter(const MeterOptions& options, const RunReader& reader, const Context& context) {
  if (auto known = check_domain(options, reader); !known) return tl::unexpected(known.error());
  const auto& manifest = reader.manifest();
  if (manifest.clocks.empty())
    return fail(ErrorCode::invalid_argument, reader.dir().string() + " does not say which wall time it was measured at",
                "only a record of this tool can be held against a meter's file");
  auto read = read_meter_of_run(options.file, manifest, context);
  if (!read) return tl::unexpected(read.error());
  const MonoTime first =
      manifest.idle_before ? manifest.idle_before->begin : manifest.begin.value_or(manifest.clocks.front().mono);
  const MonoTime last =
      manifest.idle_after ? manifest.idle_after->end : manifest.end.value_or(manifest.clocks.back().mono);
  const Nanos around = from_seconds(kMostClockError_s);
  const double from_s = seconds(read->rows.front().t - first) + options.offset_s;
  const double to_s = seconds(read->rows.back().t - first) + options.offset_s;
  for (auto& row : read->rows) row.t += from_seconds(options.offset_s);
  std::erase_if(read->rows, [&](const Row& row) { return row.t < first - around || row.t > last + around; });
  MeterReadings out{options, reference_of(read->rows)};
  if (out.reference.t_ns.size() < 2)
    return fail(ErrorCode::invalid_argument,
                fmt::format("no power of {} lies in the record: its rows are from {:.0f} s to {:.0f} s after the "
                            "record's beginning, which lasted {:.0f} s",
                            options.file, from_s, to_s, seconds(last - first)),
                "if the meter has another clock, move its times with --offset SECONDS");
  return out;
}

Result<std::string> tell_meter(const MeterReadings& meter, const std::vector<MeterFinding>& findings) {
  Table table;
  table.columns = {
      {"Against the meter", false, 0}, {"Gain", true, 0}, {"Offset", true, 0}, {"Later by", true, 1}, {"Fit", true, 1}};
  std::string clocks;
  for (const auto& f : findings) {
    const auto& c = f.fit.channel;
    if (!c.gain || !f.fit.later_s) continue;
    const std::string name = fmt::format("{} {}", c.sensor, c.column);
    if (c.gain->value < kLeastGain || c.gain->value > kMostGain)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{} reads {:.4g} times what {} reads: no sensor is so wrong", meter.options.file,
                              c.gain->value, name),
                  fmt::format("set the unit of its column ([meter] unit = \"W\", \"mW\" or \"kW\"), or say with "
                              "--meter-of what it measures (now {})",
                              meter.options.domain));
    table.rows.push_back({name, fmt::format("{:.4f} \u00b1 {:.4f}", c.gain->value, c.gain->uncertainty),
                          fmt::format("{:.2f} \u00b1 {:.2f} W", c.offset_w->value, c.offset_w->uncertainty),
                          fmt::format("{:.3f} \u00b1 {:.3f} s", f.fit.later_s->value, f.fit.later_s->uncertainty),
                          percent_text(c.explained)});
    if (f.own_delay && clocks.empty()) {
      const double apart = f.fit.later_s->value - f.own_delay->value;
      clocks =
          fmt::format("The meter's clock is {:.3f} \u00b1 {:.3f} s {} ours (by {}, whose own delay is {:.3f} s).\n",
                      std::abs(apart), std::hypot(f.fit.later_s->uncertainty, f.own_delay->uncertainty),
                      apart < 0 ? "ahead of" : "behind", name, f.own_delay->value);
    }
  }
  if (table.rows.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("the power of {} does not go along with any reading of {} within {:.0f} s",
                            meter.options.file, meter.options.domain, kMostClockError_s),
                "a gain needs a load that changes while the meter looks; if the meter has another clock, move its "
                "times with --offset SECONDS; --meter-of says what it measures");
  std::string out = render_table(table, kMeterWidth);
  if (clocks.empty()) clocks = "\"Later by\" is the channel's own delay and what the clocks are apart, together.\n";
  out += clocks;
  for (const auto& [from, to] : meter.reference.gaps)
    out +=
        fmt::format("The meter has a gap of {:.1f} s, which is left out.\n", static_cast<double>(to - from) / kNsPerS);
  return out;
}

void put_meter(const ChannelCalibration& fit, const std::string& source, ChannelProfile& out) {
  if (!fit.gain || !fit.offset_w) return;
  out.gain = SourcedValue{fit.gain->value, source};
  out.gain_tolerance =
      SourcedValue{fit.gain->uncertainty / fit.gain->value, source + "; without the meter's own error"};
  out.offset_w = SourcedValue{fit.offset_w->value, source};
  out.offset_tolerance_w = SourcedValue{fit.offset_w->uncertainty, source};
}

}  // namespace ergometer::cli
