// `ergometer sensors`: what can be measured here, with a reading of each, and what cannot, with the reason and remedy.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/number.hpp"
#include "command.hpp"
#include "device/registry.hpp"
#include "discover_options.hpp"

namespace ergometer::cli {
namespace {

using nlohmann::json;

// Some metrics are means between two readings, which must be this far apart to have a value.
constexpr Nanos kBetweenReadings = std::chrono::milliseconds(150);

struct Now {
  std::vector<std::optional<double>> values;  // one a channel; empty where the sensor gave none
  std::string error;
};

// The newest reading of every sensor, in their order.
std::vector<Now> read_all(const Discovery& found) {
  std::vector<Now> all;
  for (const auto& sensor : found.sensors)
    all.push_back({std::vector<std::optional<double>>(sensor->info().channels.size()), {}});
  for (int round = 0; round < 2; ++round) {
    if (round > 0) std::this_thread::sleep_for(kBetweenReadings);
    for (std::size_t i = 0; i < all.size(); ++i) {
      Readings readings;
      const auto done = found.sensors[i]->read(readings);
      all[i].error = done ? "" : done.error().message;
      if (!readings.rows.empty()) all[i].values = readings.rows.back().values;
    }
  }
  return all;
}

json channel_json(const Channel& channel, std::optional<double> value) {
  const auto optional_s = [](const std::optional<Nanos>& d) { return d ? json(seconds(*d)) : json(nullptr); };
  return {{"column", channel.column},
          {"quantity", to_word(channel.quantity)},
          {"unit", channel.unit},
          {"behaviour", to_word(channel.behaviour)},
          {"domain", channel.domain},
          {"device", channel.device},
          {"scope", to_word(channel.scope)},
          {"method", channel.method ? json(to_word(*channel.method)) : json(nullptr)},
          {"measured", channel.measured},
          {"in_total", channel.in_total},
          {"period_s", optional_s(channel.period)},
          {"window_s", optional_s(channel.window)},
          {"value", value ? json(*value) : json(nullptr)},
          {"note", channel.note}};
}

std::string sensors_json(Discovery& found) {
  json root = {{"schema", "ergometer.sensors/1"},
               {"sensors", json::array()},
               {"absences", json::array()},
               {"gpus", json::array()}};
  const auto readings = read_all(found);
  for (std::size_t s = 0; s < readings.size(); ++s) {
    const auto& sensor = found.sensors[s];
    const auto& [values, error] = readings[s];
    json channels = json::array();
    for (std::size_t i = 0; i < values.size(); ++i)
      channels.push_back(channel_json(sensor->info().channels[i], values[i]));
    root["sensors"].push_back({{"name", sensor->info().name},
                               {"interface", sensor->info().interface},
                               {"interval_s", seconds(sensor->info().interval)},
                               {"own_time", sensor->info().own_time},
                               {"error", error.empty() ? json(nullptr) : json(error)},
                               {"channels", channels}});
  }
  for (const auto& absence : found.node.absences)
    root["absences"].push_back({{"interface", absence.interface},
                                {"what", absence.what},
                                {"reason", absence.reason},
                                {"remedy", absence.remedy}});
  for (const auto& gpu : found.node.gpus)
    root["gpus"].push_back({{"index", gpu.index},
                            {"uuid", gpu.uuid},
                            {"name", gpu.name},
                            {"pci_bus_id", gpu.pci_bus_id},
                            {"visible", gpu.visible},
                            {"state", gpu.state}});
  return root.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string duration_text(Nanos d) {
  const double s = seconds(d);
  return s < 1 ? fmt::format("{:g} ms", s * 1e3) : fmt::format("{:g} s", s);
}

std::string value_text(const std::optional<double>& value, const std::string& unit) {
  if (!value) return "-";
  if (unit == "B") return fmt::format("{:.1f} MiB", *value / (1 << 20));
  if (unit == "Hz") return fmt::format("{:.0f} MHz", *value / 1e6);
  return fmt::format("{:.4g} {}", *value, unit == "1" || unit.empty() ? "" : unit);
}

void print_table(Discovery& found) {
  for (const auto& gpu : found.node.gpus)
    fmt::print("GPU {}  {}  {}{}{}\n", gpu.index, gpu.name, gpu.uuid,
               gpu.visible ? "" : "  (not visible to a command started here)",
               gpu.state == "ok" ? "" : "  [" + gpu.state + "]");
  fmt::print("{:<18} {:<14} {:<10} {:<28} {:>16}\n", "SENSOR", "DOMAIN", "SCOPE", "CHANNEL", "NOW");
  const auto readings = read_all(found);
  for (std::size_t s = 0; s < readings.size(); ++s) {
    const auto& [values, error] = readings[s];
    const auto& info = found.sensors[s]->info();
    fmt::print("{} ({}, every {}{})\n", info.name, info.interface, duration_text(info.interval),
               info.own_time ? ", own time stamps" : "");
    if (!error.empty()) fmt::print("  {}\n", error);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto& c = info.channels[i];
      fmt::print("{:<18} {:<14} {:<10} {:<28} {:>16}{}\n", "", c.domain, to_word(c.scope), c.column,
                 value_text(values[i], c.unit), c.measured ? "" : "  estimate");
    }
  }
  if (found.sensors.empty()) fmt::print("(none)\n");
  if (!found.node.absences.empty()) fmt::print("\nMissing\n");
  for (const auto& absence : found.node.absences) {
    fmt::print("  {}: {}: {}\n", absence.interface, absence.what, absence.reason);
    if (!absence.remedy.empty()) fmt::print("    remedy: {}\n", absence.remedy);
  }
}

}  // namespace

void add_sensors(CLI::App& app, Context& context) {
  struct Options {
    bool as_json = false;
    std::vector<std::string> only;
  };
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("sensors", "List what can be measured here, and what cannot and why");
  command->add_flag("--json", options->as_json, "As JSON, schema ergometer.sensors/1");
  command->add_option("--sensors", options->only, "Only these interfaces, e.g. nvml,rapl")->delimiter(',');
  command->callback([options, &context] {
    DiscoverOptions discover_options = default_discover_options(context);
    discover_options.only = options->only;
    auto found = discover(context.host(), discover_options);
    if (!found) {
      context.exit_code = report_error(found.error());
      return;
    }
    if (options->as_json)
      fmt::print("{}", sensors_json(*found));
    else
      print_table(*found);
  });
}

}  // namespace ergometer::cli
