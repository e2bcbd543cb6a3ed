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

// Writes what was found of one device's channels, so that later runs on it know it.
Result<fs::path> write_profile(const fs::path& folder, const std::string& device, const std::string& interface,
                               const std::vector<std::pair<Channel, ChannelCalibration>>& channels,
                               const std::string& source) {
  Profile profile;
  profile.name = "calibrated " + device;
  profile.devices = {device};
  profile.interfaces = {interface};
  for (const auto& [channel, calibration] : channels) {
    auto values = profile_of(channel, calibration, source);
    if (values.period_ms || values.window_ms || values.delay_ms || values.resolution)
      profile.channels.push_back(std::move(values));
  }
  if (profile.channels.empty()) return fs::path();
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return tl::unexpected(errno_error("create", folder, ec.value()));
  const auto file = folder / (file_name_of(interface + "-" + device) + ".toml");
  if (auto written = write_file_atomically(file, to_toml(profile)); !written) return tl::unexpected(written.error());
  return file;
}

}  // namespace

bool gives_power(const Channel& channel) {
  return channel.measured && channel.method &&
         (channel.quantity == Quantity::power || channel.quantity == Quantity::energy);
}

int report_calibration(RunReader& reader, const fs::path& profiles) {
  bool any = false;
  const std::string source = "ergometer calibrate, run " + reader.dir().filename().string();
  for (const auto& node : reader.nodes()) {
    auto regions = reader.regions(node.name);
    if (!regions) return report_error(regions.error());
    const auto loads = loads_of(*regions);
    std::map<std::string, std::vector<std::pair<Channel, ChannelCalibration>>> found;  // by domain
    std::map<std::string, std::string> interfaces;
    for (const auto& sensor : reader.sensors(node.name)) {
      const auto trace = reader.samples(node.name, sensor);
      if (!trace) return report_error(trace.error());
      for (std::size_t i = 0; i < trace->info.channels.size(); ++i) {
        const Channel& channel = trace->info.channels[i];
        const auto load = loads.find(load_for(channel));
        if (!gives_power(channel) || load == loads.end()) continue;
        found[channel.domain].emplace_back(channel, calibrate_channel(*trace, i, load->second.reference));
        interfaces[channel.domain] = trace->info.interface;
      }
    }
    for (auto& [domain, channels] : found) {
      std::stable_sort(channels.begin(), channels.end(),
                       [](const auto& a, const auto& b) { return *a.first.method < *b.first.method; });
      // The domain's best method has 100 %.
      const auto most_j = channels.front().second.energy_j;
      Table table{kColumns, {}};
      for (const auto& [channel, calibration] : channels) table.rows.push_back(row_of(channel, calibration, most_j));
      fmt::print("{}{}\n{}\n", domain, channels.front().first.device.empty() ? "" : " " + channels.front().first.device,
                 render_table(table, kWidth));
      any = true;
      if (std::ranges::none_of(channels, [](const auto& c) { return c.second.explained > 0; }))
        fmt::print(
            "The load does not show in these readings: the sensor stands still, or is of another part of the "
            "machine.\n\n");
      const std::string device = channels.front().first.device;
      if (device.empty()) continue;
      const auto file = write_profile(profiles, device, interfaces[domain], channels, source);
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
