#include "device/redfish/redfish.hpp"

#include <fmt/format.h>

#include "device/node_meter.hpp"
#include "device/redfish/controller.hpp"

namespace ergometer {
namespace {

using namespace redfish;
using namespace std::chrono_literals;

constexpr Nanos kPollInterval = 1s;
constexpr Nanos kLimit = 5s;          // for one answer
constexpr Nanos kFirstPatience = 4s;  // in discovery

const char* words_of(Source source) {
  switch (source) {
    case Source::environment:
      return "EnvironmentMetrics";
    case Source::supplies:
      return "sum of the power supplies' input";
    case Source::power:
      return "PowerControl";
    case Source::none:
      break;
  }
  return "not yet known: the controller is slow";
}

class RedfishSensor final : public Sensor {
 public:
  RedfishSensor(SensorInfo info, std::shared_ptr<Clock> clock, std::unique_ptr<Controller> controller)
      : Sensor(std::move(info)), clock_(std::move(clock)), controller_(std::move(controller)) {}

  Result<void> read(Readings& out) override {
    if (auto ready = controller_->prepare(4 * kLimit, kLimit); !ready) return ready;
    const auto reading = controller_->read(kLimit);
    if (!reading) return tl::unexpected(reading.error());
    std::vector<std::optional<double>> row;
    bool any = false;
    for (const auto& channel : info_.channels) {
      row.push_back(channel.quantity == Quantity::power ? reading->power_w : reading->energy_j);
      any |= row.back().has_value();
    }
    if (!any)
      return fail(ErrorCode::unavailable, "the controller reads nothing, or 0 W, which no running machine draws");
    if (reading->power_w) watch_.see(*reading->power_w, clock_->now(), out);
    out.add(std::move(row));
    return {};
  }

 private:
  std::shared_ptr<Clock> clock_;
  std::unique_ptr<Controller> controller_;
  StandstillWatch watch_{"Redfish power"};
};

Channel energy_channel(const std::string& device, const std::string& note) {
  Channel c = node_power_channel("redfish_energy_j", device, note);
  as_energy_counter(c);
  return c;
}

}  // namespace

void discover_redfish(const Host& host, const DiscoverOptions& options, Discovery& out) {
  const auto target = meter_target(options, "redfish", "redfish.host");
  const auto absent = [&](const Error& error) { meter_absent(out, "redfish", "node power", error, true); };
  if (target.empty()) {
    for (const auto& request : options.only)
      if (request == "redfish")
        absent({ErrorCode::invalid_argument, "no host is named", "write --sensors redfish=HOST, or [redfish] host"});
    return;
  }
  Account account{meter_setting(options, "redfish.user"), meter_setting(options, "redfish.password"),
                  meter_setting(options, "redfish.chassis")};
  if (account.user.empty())
    return absent({ErrorCode::permission_denied, "no account for " + target,
                   "set user and password in the table [redfish] of ergometer.toml (docs/node-meters.md)"});
  if (target.find_first_of("/@ \t\r\n") != std::string::npos)
    return absent({ErrorCode::invalid_argument, fmt::format("\"{}\" is no host name", target),
                   "write redfish=HOST or redfish=HOST:PORT; the account belongs into ergometer.toml"});
  auto https = Https::create(
      host, {target, meter_setting(options, "redfish.ca-file"), meter_setting(options, "redfish.verify") != "false"});
  if (!https) return absent(https.error());
  auto controller = std::make_unique<Controller>(std::move(*https), std::move(account));
  const auto ready = controller->prepare(kFirstPatience, kFirstPatience);
  if (!ready && ready.error().code != ErrorCode::timeout) return absent(ready.error());
  Reading first{0.0, 0.0};  // a slow controller may have both
  if (ready)
    if (const auto reading = controller->read(kFirstPatience)) first = *reading;

  SensorInfo info;
  info.name = info.interface = "redfish";
  info.interval = kPollInterval;
  info.note = fmt::format("{}{}{}: {}", target, controller->chassis().empty() ? "" : ", chassis ",
                          controller->chassis(), words_of(controller->source()));
  if (first.power_w) info.channels.push_back(node_power_channel("redfish_power_w", target, info.note));
  if (first.energy_j) info.channels.push_back(energy_channel(target, info.note));
  if (info.channels.empty()) return absent({ErrorCode::unavailable, target + " reads nothing", ""});
  out.sensors.push_back(std::make_shared<RedfishSensor>(std::move(info), host.clock, std::move(controller)));
}

}  // namespace ergometer
