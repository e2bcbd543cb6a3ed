#include "device/node_meter.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ergometer {

std::string meter_setting(const DiscoverOptions& options, const std::string& key) {
  const auto it = options.meter_settings.find(key);
  return it == options.meter_settings.end() ? std::string() : it->second;
}

std::string meter_target(const DiscoverOptions& options, std::string_view name, const std::string& key) {
  for (const auto& request : options.only)
    if (request.size() > name.size() && request.starts_with(name) && request[name.size()] == '=')
      return request.substr(name.size() + 1);
  const bool left_out = !options.only.empty() && std::ranges::none_of(options.only, [&](const std::string& request) {
    return request == name || (request.starts_with(name) && request[name.size()] == '-');
  });
  return left_out ? std::string() : meter_setting(options, key);
}

void meter_absent(Discovery& out, const char* interface, const char* what, const Error& error, bool asked) {
  out.node.absences.push_back({interface, what, error.message, error.hint, error.code == ErrorCode::permission_denied});
  if (asked) out.warnings.push_back({"meter-missing", fmt::format("no {}: {}", what, error.message), error.hint});
}

Channel node_power_channel(std::string column, std::string device, std::string note) {
  Channel c;
  c.column = std::move(column);
  c.quantity = Quantity::power;
  c.unit = "W";
  c.domain = "node";
  c.device = std::move(device);
  c.scope = Scope::node;
  c.method = Method::integral;
  c.note = std::move(note);
  return c;
}

void as_energy_counter(Channel& channel) {
  channel.quantity = Quantity::energy;
  channel.unit = "J";
  channel.behaviour = Behaviour::counter;
  channel.method = Method::counter;
}

void StandstillWatch::see(double value, MonoTime now, Readings& out) {
  const bool same = value_ == value;
  value_ = value;
  see_same(same, now, out);
}

void StandstillWatch::see_stamp(std::uint64_t stamp, MonoTime now, Readings& out) {
  const bool same = stamp_ == stamp;
  stamp_ = stamp;
  see_same(same, now, out);
}

void StandstillWatch::see_same(bool same, MonoTime now, Readings& out) {
  if (!same) {
    if (stuck_) out.event("back", fmt::format("{} moves again after {:.0f} s", what_, seconds(now - since_)));
    stuck_ = false;
    repeats_ = 1;
    since_ = now;
    return;
  }
  ++repeats_;
  if (stuck_ || repeats_ < kStillReadings || now - since_ < kStillTime) return;
  stuck_ = true;
  out.event("stuck",
            fmt::format("{} is the same in {} readings over {:.0f} s", what_, repeats_, seconds(now - since_)));
}

}  // namespace ergometer
