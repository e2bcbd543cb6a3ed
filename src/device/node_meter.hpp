// What the node meters (ipmi, redfish, slurm, meter) share: how the user names one, the channel of a whole node, and
// the watch over readings that stand still.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "device/sensor.hpp"

namespace ergometer {

// "" if a setting is not there.
[[nodiscard]] std::string meter_setting(const DiscoverOptions& options, const std::string& key);
// What stands behind "NAME=" in --sensors; else, unless --sensors leaves NAME out, the setting `key`; else "".
[[nodiscard]] std::string meter_target(const DiscoverOptions& options, std::string_view name, const std::string& key);

// A meter that is not there. Where the user asked for it, a warning as well: the run was to have it.
void meter_absent(Discovery& out, const char* interface, const char* what, const Error& error, bool asked);

// Power in watts of the whole node as one momentary reading; domain and scope "node", so that it is never added to the
// parts that it contains.
[[nodiscard]] Channel node_power_channel(std::string column, std::string device, std::string note);

// Makes such a channel an energy counter in joules.
void as_energy_counter(Channel& channel);

// Notices readings that stand still: power of a running machine moves by at least a watt within a minute, so a value
// that is the same for kStillReadings and kStillTime comes from a controller that no longer measures. Not thread-safe.
class StandstillWatch {
 public:
  static constexpr int kStillReadings = 60;
  static constexpr Nanos kStillTime = std::chrono::seconds(60);
  // `what` names the reading in the events.
  explicit StandstillWatch(std::string what) : what_(std::move(what)) {}
  // A reading at `now`. Event `stuck` once when it has stood still for that long, `back` when it moves again.
  void see(double value, MonoTime now, Readings& out);
  // The device's own time stamp instead of a value: the same rules, whatever the value does.
  void see_stamp(std::uint64_t stamp, MonoTime now, Readings& out);

 private:
  void see_same(bool same, MonoTime now, Readings& out);
  std::string what_;
  std::optional<double> value_;
  std::optional<std::uint64_t> stamp_;
  MonoTime since_;
  int repeats_ = 0;
  bool stuck_ = false;
};

}  // namespace ergometer
