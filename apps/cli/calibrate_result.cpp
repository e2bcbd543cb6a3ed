#include "calibrate_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "analysis/calibration.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "device/profiles.hpp"
#include "report/table.hpp"
#include "report/units.hpp"

namespace ergometer::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWidth = 150;

// The load of one device as its markers tell it: 1 inside of "load" regions, over the span of the device's region.
struct DeviceLoad {
  Reference reference;
  MonoTime begin, end;
};

std::map<std::string, DeviceLoad> loads_of(const std::vector<Region>& regions) {
  std::map<std::string, DeviceLoad> loads;
  for (const auto& region : regions) {
    if (region.path.find('/') != std::string::npos) continue;
    auto& load = loads[region.path];
    load.begin = region.begin;
    load.end = region.end;
    load.reference.step(to_ns(region.begin), 0);
  }
  for (const auto& region : regions) {
    const auto load = loads.find(std::string(region.parent()));
    if (region.name() != "load" || load == loads.end()) continue;
    load->second.reference.step(to_ns(region.begin), 1);
    load->second.reference.step(to_ns(region.end), 0);
  }
  for (auto& [name, load] : loads) load.reference.step(to_ns(load.end), 0);
  return loads;
}

// Channels of a GPU are judged by the load on that GPU, all others by that on the CPUs.
std::string load_for(const Channel& channel) {
  if (!channel.domain.starts_with("gpu/")) return "cpu";
  return "gpu" + channel.domain.substr(4);
}

// A read takes microseconds, for which with_unit has no prefix.
std::string time_text(const std::optional<double>& s) {
  if (!s) return kMissing;
  return *s < 1e-3 ? fmt::format("{:.3g} us", *s * 1e6) : with_unit(*s, "s", 3);
}

std::string interval_text(const std::optional<Estimate>& value, const char* unit) {
  if (!value) return kMissing;
  return fmt::format("{} \u00b1 {}", with_unit(value->value, unit, 3), with_unit(value->uncertainty, unit, 2));
}

std::vector<std::string> row_of(const Channel& channel, const ChannelCalibration& c, std::optional<double> most_j) {
  const std::string period = !c.period_s ? kMissing : (c.period_is_bound ? "\u2264 " : "") + time_text(c.period_s);
  return {fmt::format("{} {}", c.sensor, c.column),
          channel.method ? to_word(*channel.method) : "",
          period,
          interval_text(c.window_s, "s"),
          interval_text(c.delay_s, "s"),
          c.sampled_share ? percent_text(*c.sampled_share) : kMissing,
          c.resolution ? with_unit(*c.resolution, channel.unit, 3) : kMissing,
          time_text(c.read_s),
          time_text(c.read_p99_s),
          with_unit(c.low_w, "W"),
          with_unit(c.high_w, "W"),
          c.energy_j && most_j ? percent_text(*c.energy_j / *most_j) : kMissing,
          c.explained > 0 ? percent_text(c.explained) : kMissing};
}

const std::vector<TableColumn> kColumns{
    {"Channel", false, 0}, {"Method", false, 2}, {"Updates each"},  {"Window"}, {"Delay"}, {"Sampled", true, 1},
    {"Step", true, 2},     {"Read", true, 2},    {"99 %", true, 3}, {"Off"},    {"On"},    {"Energy", true, 1},
    {"Fit", true, 1}};

// So much of the readings' variance must be explained before a window or delay is believed in other runs.
constexpr double kBelieved = 0.9;

ChannelProfile profile_of(const Channel& channel, const ChannelCalibration& c, const std::string& source) {
  ChannelProfile out;
  out.columns = {channel.column};
  const auto put = [&](std::optional<SourcedValue>& field, std::optional<double> value, double scale) {
    if (value) field = SourcedValue{std::max(0.0, *value) * scale, source};
  };
  constexpr double kMs = 1e3;
  if (!c.period_is_bound) put(out.period_ms, c.period_s, kMs);
  put(out.resolution, c.resolution, 1);
  if (c.explained < kBelieved) return out;
  if (c.window_s) put(out.window_ms, c.window_s->value, kMs);
  if (c.delay_s) put(out.delay_ms, c.delay_s->value, kMs);
  // A window of 0 is a snapshot: no share of the time at all, which the field cannot say.
  if (c.sampled_share && *c.sampled_share > 0) put(out.sampled_share, c.sampled_share, 1);
  return out;
}

// What was found of one channel: by the load, by the meter.
struct Found {
  Channel channel;
  ChannelCalibration load;
  std::optional<MeterCalibration> meter;
};

// Gains that an earlier calibration against a meter found outlive one without.
void keep_gains(const fs::path& file, std::vector<ChannelProfile>& channels) {
  const auto text = read_file(file);
  const auto old = text ? parse_profile(*text, file.string()) : Result<Profile>(tl::unexpected(text.error()));
  if (!old) return;
  for (const auto& before : old->channels) {
    if (!before.gain) continue;
    const auto same = std::ranges::find(channels, before.columns, &ChannelProfile::columns);
    if (same == channels.end()) {
      channels.push_back(before);
    } else if (!same->gain) {
      same->gain = before.gain;
      same->gain_tolerance = before.gain_tolerance;
      same->offset_w = before.offset_w;
      same->offset_tolerance_w = before.offset_tolerance_w;
    }
  }
}

// Writes what was found of one device's channels, so that later runs on it know it.
Result<fs::path> write_profile(const fs::path& folder, const std::string& device, const std::string& interface,
                               const std::vector<Found>& channels, const std::string& source,
                               const std::string& meter_source) {
  Profile profile;
  profile.name = "calibrated " + device;
  profile.devices = {device};
  profile.interfaces = {interface};
  for (const auto& found : channels) {
    auto values = profile_of(found.channel, found.load, source);
    if (found.meter && found.meter->later_s) put_meter(found.meter->channel, meter_source, values);
    if (values.period_ms || values.window_ms || values.delay_ms || values.resolution || values.gain)
      profile.channels.push_back(std::move(values));
  }
  if (profile.channels.empty()) return fs::path();
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return tl::unexpected(errno_error("create", folder, ec.value()));
  const auto file = folder / (file_name_of(interface + "-" + device) + ".toml");
  keep_gains(file, profile.channels);
  if (auto written = write_file_atomically(file, to_toml(profile)); !written) return tl::unexpected(written.error());
  return file;
}

struct DeviceFound {
  std::vector<Found> channels;
  std::string interface;
  bool loaded = false;  // it had a load of known times
};

// Every channel that a load or the meter can tell about, by domain.
Result<std::map<std::string, DeviceFound>> look_at(RunReader& reader, const std::string& node,
                                                   const std::map<std::string, DeviceLoad>& loads,
                                                   const std::optional<MeterReadings>& meter) {
  std::map<std::string, DeviceFound> out;
  for (const auto& sensor : reader.sensors(node)) {
    const auto trace = reader.samples(node, sensor);
    if (!trace) return tl::unexpected(trace.error());
    for (std::size_t i = 0; i < trace->info.channels.size(); ++i) {
      const Channel& channel = trace->info.channels[i];
      const auto load = loads.find(load_for(channel));
      const bool metered = meter && channel.domain == meter->options.domain;
      if (!gives_power(channel) || (load == loads.end() && !metered)) continue;
      auto& device = out[channel.domain];
      Found found{channel, {}, {}};
      found.load.sensor = sensor;
      found.load.column = channel.column;
      if (load != loads.end()) found.load = calibrate_channel(*trace, i, load->second.reference);
      if (metered) found.meter = calibrate_against_meter(*trace, i, meter->reference, kMostClockError_s);
      device.loaded |= load != loads.end();
      device.interface = trace->info.interface;
      device.channels.push_back(std::move(found));
    }
  }
  return out;
}

}  // namespace

bool gives_power(const Channel& channel) {
  return channel.measured && channel.method &&
         (channel.quantity == Quantity::power || channel.quantity == Quantity::energy);
}

int report_calibration(RunReader& reader, const fs::path& profiles, const std::optional<MeterReadings>& meter) {
  bool any = false;
  const std::string source = "ergometer calibrate, run " + reader.dir().filename().string();
  const std::string meter_source =
      meter ? source + ", against " + fs::path(meter->options.file).filename().string() : std::string();
  for (const auto& node : reader.nodes()) {
    auto regions = reader.regions(node.name);
    if (!regions) return report_error(regions.error());
    auto by_domain = look_at(reader, node.name, loads_of(*regions), meter);
    if (!by_domain) return report_error(by_domain.error());
    for (auto& [domain, device] : *by_domain) {
      auto& channels = device.channels;
      std::ranges::stable_sort(channels, {}, [](const Found& f) { return *f.channel.method; });
      // The domain's best method has 100 %.
      const auto most_j = channels.front().load.energy_j;
      const std::string name = channels.front().channel.device;
      fmt::print("{}{}\n", domain, name.empty() ? "" : " " + name);
      if (device.loaded) {
        Table table{kColumns, {}};
        for (const auto& f : channels) table.rows.push_back(row_of(f.channel, f.load, most_j));
        fmt::print("{}\n", render_table(table, kWidth));
        if (std::ranges::none_of(channels, [](const Found& f) { return f.load.explained > 0; }))
          fmt::print(
              "The load does not show in these readings: the sensor stands still, or is of another part of the "
              "machine.\n\n");
      }
      if (meter && domain == meter->options.domain) {
        std::vector<MeterFinding> findings;
        for (const auto& f : channels)
          if (f.meter) findings.push_back({f.channel, *f.meter, f.load.delay_s});
        const auto told = tell_meter(*meter, findings);
        if (!told) return report_error(told.error());
        fmt::print("{}\n", *told);
      }
      any = true;
      if (name.empty()) continue;
      const auto file = write_profile(profiles, name, device.interface, channels, source, meter_source);
      if (!file) return report_error(file.error());
      if (!file->empty()) fmt::print("profile: {}\n\n", file->string());
    }
  }
  if (any) return 0;
  return report_error({ErrorCode::not_found,
                       fmt::format("{} holds no power of a device under a load", reader.dir().string()),
                       "ergometer doctor says which sensors this machine has and how to allow them"});
}

}  // namespace ergometer::cli
