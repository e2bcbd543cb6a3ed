#include "device/ipmi/ipmi.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "device/ipmi/link.hpp"
#include "device/node_meter.hpp"

namespace ergometer {
namespace {

using namespace ipmi;
using namespace std::chrono_literals;

constexpr Nanos kInterval = 1s;             // controllers renew their readings once a second at best
constexpr double kMaxRollingPeriod_s = 60;  // a longer "reporting period" is the time since the last reset
constexpr double kClockStep_s = 2;
constexpr std::array kDeviceFiles{"/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0"};

SensorInfo info_of(std::string name, std::vector<Channel> channels, bool own_time = false) {
  SensorInfo info;
  info.interface = name;
  info.name = std::move(name);
  info.channels = std::move(channels);
  info.interval = kInterval;
  info.own_time = own_time;
  return info;
}

// Whether a reading is a new one, by the controller's time stamp. Stamps are believed until the value changes under
// the same stamp, since some controllers never set their clock.
class Freshness {
 public:
  explicit Freshness(const std::string& what) : values_(what), stamps_("the time stamp of " + what) {}
  bool is_new(const PowerStatistics& reading, MonoTime now, Readings& out) {
    believed_ = believed_ && reading.stamp != 0 && reading.stamp != 0xFFFFFFFF;
    const bool same_stamp = last_ && last_->stamp == reading.stamp;
    if (same_stamp && last_->current_w != reading.current_w) believed_ = false;
    last_ = reading;
    if (!believed_) {
      values_.see(reading.current_w, now, out);
      return true;
    }
    stamps_.see_stamp(reading.stamp, now, out);
    if (!same_stamp) values_.see(reading.current_w, now, out);
    return !same_stamp;
  }

 private:
  StandstillWatch values_, stamps_;
  std::optional<PowerStatistics> last_;
  bool believed_ = true;
};

// DCMI's momentary power and, where the controller forms one, its rolling mean.
class DcmiSensor final : public Sensor {
 public:
  DcmiSensor(SensorInfo info, std::shared_ptr<Clock> clock, std::shared_ptr<IpmiLink> link)
      : Sensor(std::move(info)), clock_(std::move(clock)), link_(std::move(link)) {}

  Result<void> read(Readings& out) override {
    const auto response = link_->send(dcmi_command());
    if (!response) return tl::unexpected(response.error());
    const auto reading = parse_dcmi(*response);
    if (!reading) return tl::unexpected(reading.error());
    if (!reading->active && std::exchange(active_, reading->active))
      out.event("note", fmt::format("reads {:.0f} W and says that measurement is not active", reading->current_w));
    active_ = reading->active;
    if (!freshness_.is_new(*reading, clock_->now(), out)) return {};
    std::vector<std::optional<double>> row{reading->current_w};
    if (info_.channels.size() > 1)
      row.push_back(reading->average_w > 0 ? std::optional(reading->average_w) : std::nullopt);
    out.add(std::move(row));
    return {};
  }

 private:
  std::shared_ptr<Clock> clock_;
  std::shared_ptr<IpmiLink> link_;
  Freshness freshness_{"DCMI power"};
  bool active_ = true;
};

struct NodeManagerPart {
  std::uint8_t domain;
  const char *column, *name;
  Scope scope;
};
constexpr std::array<NodeManagerPart, 3> kNodeManagerParts{{{0, "nm_node_power_w", "node", Scope::node},
                                                            {1, "nm_cpu_power_w", "package/all", Scope::package},
                                                            {2, "nm_memory_power_w", "dram/all", Scope::dram}}};

class NodeManagerSensor final : public Sensor {
 public:
  NodeManagerSensor(SensorInfo info, std::shared_ptr<Clock> clock, std::shared_ptr<IpmiLink> link, std::uint8_t channel,
                    std::vector<std::uint8_t> domains)
      : Sensor(std::move(info)), clock_(std::move(clock)), link_(std::move(link)), channel_(channel) {
    for (std::size_t i = 0; i < domains.size(); ++i) {
      domains_.push_back(domains[i]);
      freshness_.emplace_back(info_.channels[i].column);
    }
  }

  Result<void> read(Readings& out) override {
    std::vector<std::optional<double>> row;
    std::optional<Error> error;
    bool any = false;
    for (std::size_t i = 0; i < domains_.size(); ++i) {
      const auto reading = ask(*link_, channel_, domains_[i]);
      if (!reading) error = reading.error();
      const bool fresh = reading && freshness_[i].is_new(*reading, clock_->now(), out);
      any |= fresh;
      row.push_back(fresh ? std::optional(reading->current_w) : std::nullopt);
    }
    if (any)
      out.add(std::move(row));
    else if (error)
      return tl::unexpected(*error);
    return {};
  }

  static Result<PowerStatistics> ask(IpmiLink& link, std::uint8_t channel, std::uint8_t domain) {
    const auto response = link.send_bridged(node_manager_command(domain), channel);
    if (!response) return tl::unexpected(response.error());
    return parse_node_manager(*response);
  }

 private:
  std::shared_ptr<Clock> clock_;
  std::shared_ptr<IpmiLink> link_;
  std::uint8_t channel_;
  std::vector<std::uint8_t> domains_;
  std::vector<Freshness> freshness_;
};

// The controller's clock on the monotonic one. Their distance is the smallest seen: an answer can be late, never early.
class ControllerClock {
 public:
  MonoTime to_mono(double stamp_s, MonoTime read, Readings& out) {
    const double distance = seconds(read.time_since_epoch()) - stamp_s;
    if (distance_ && std::abs(distance - *distance_) > kClockStep_s) {
      out.event("clock", fmt::format("the controller's clock jumped by {:.1f} s", *distance_ - distance));
      distance_.reset();
    }
    distance_ = std::min(distance_.value_or(distance), distance);
    return mono_ns(from_seconds(stamp_s + *distance_).count());
  }

 private:
  std::optional<double> distance_;
};

// Lenovo's energy FIFO: a counter of joules, or the mean power of the newer form. Rows carry the controller's time.
class XccEnergySensor final : public Sensor {
 public:
  XccEnergySensor(SensorInfo info, std::shared_ptr<Clock> clock, std::shared_ptr<IpmiLink> link)
      : Sensor(std::move(info)), clock_(std::move(clock)), link_(std::move(link)) {}

  Result<void> read(Readings& out) override {
    const MonoTime before = clock_->now();
    const auto response = link_->send(xcc_energy_command());
    if (!response) return tl::unexpected(response.error());
    const auto reading = parse_xcc_energy(*response);
    if (!reading) return tl::unexpected(reading.error());
    const bool counter = info_.channels[0].behaviour == Behaviour::counter;
    const auto value = counter ? reading->energy_j : reading->power_w;
    if (!value) return fail(ErrorCode::corrupt, "the XCC changed the form of its energy reading");
    const MonoTime after = clock_->now();
    const MonoTime middle = before + (after - before) / 2;
    watch_.see_stamp(static_cast<std::uint64_t>(reading->stamp_s * 1000), middle, out);
    if (last_stamp_s_ == reading->stamp_s) return {};
    last_stamp_s_ = reading->stamp_s;
    out.add_at(times_.to_mono(reading->stamp_s, middle, out), {value});
    return {};
  }

 private:
  std::shared_ptr<Clock> clock_;
  std::shared_ptr<IpmiLink> link_;
  StandstillWatch watch_{"the time stamp of XCC energy"};
  ControllerClock times_;
  std::optional<double> last_stamp_s_;
};

class XccPowerSensor final : public Sensor {
 public:
  XccPowerSensor(SensorInfo info, std::shared_ptr<Clock> clock, std::shared_ptr<IpmiLink> link)
      : Sensor(std::move(info)), clock_(std::move(clock)), link_(std::move(link)) {}

  Result<void> read(Readings& out) override {
    const auto response = link_->send(xcc_power_command());
    if (!response) return tl::unexpected(response.error());
    const auto reading = parse_xcc_power(*response);
    if (!reading) return tl::unexpected(reading.error());
    const double tray_w = reading->board_w + reading->gpu_w.value_or(0);
    watch_.see(tray_w, clock_->now(), out);
    std::vector<std::optional<double>> row{tray_w};
    if (info_.channels.size() > 1) {
      // Without the GPU board's part the tray's power is not known.
      if (!reading->gpu_w) row[0].reset();
      row.insert(row.end(), {reading->board_w, reading->gpu_w});
    }
    out.add(std::move(row));
    return {};
  }

 private:
  std::shared_ptr<Clock> clock_;
  std::shared_ptr<IpmiLink> link_;
  StandstillWatch watch_{"XCC power"};
};

// --- discovery ---------------------------------------------------------------------------------------------------

class Finder {
 public:
  Finder(const Host& host, const DiscoverOptions& options, Discovery& out)
      : host_(host), options_(options), out_(out) {}

  void find() {
    auto target = target_of();
    if (!target) return;
    where_ = target->host.empty() ? target->device : "the controller " + target->host;
    auto link = IpmiLink::create(host_, std::move(*target));
    if (!link) return absent("ipmi", "node power", link.error());
    link_ = *link;
    const auto id = link_->send(device_id_command());
    // A controller that answers nothing is not asked thrice.
    if (!id) return absent("ipmi", "node power", id.error());
    const auto manufacturer = parse_manufacturer(*id);
    if (part_wanted("ipmi-dcmi")) find_dcmi();
    if (part_wanted("ipmi-xcc") && manufacturer && *manufacturer == kLenovo) find_xcc();
    // Where no management engine listens, bridging to it takes seconds: only Intel's boards are asked unbidden.
    if (named("ipmi-nm") || (part_wanted("ipmi-nm") && manufacturer && *manufacturer == kIntel)) find_node_manager();
  }

 private:
  bool named(std::string_view part) const { return std::ranges::find(options_.only, part) != options_.only.end(); }
  bool part_wanted(std::string_view part) const {
    return options_.only.empty() || named(part) || std::ranges::any_of(options_.only, [](const std::string& request) {
             return request == "ipmi" || request.starts_with("ipmi=");
           });
  }
  void absent(const char* interface, const char* what, const Error& error) {
    meter_absent(out_, interface, what, error, lan_ || named(interface));
  }

  std::optional<Target> target_of() {
    Target target;
    target.host = meter_target(options_, "ipmi", "ipmi.host");
    lan_ = !target.host.empty();
    if (lan_) {
      target.user = meter_setting(options_, "ipmi.user");
      target.password = meter_setting(options_, "ipmi.password");
      return target;
    }
    for (const auto* file : kDeviceFiles) {
      const auto path = host_.root.path(file);
      if (::access(path.c_str(), F_OK) != 0) continue;
      if (::access(path.c_str(), R_OK | W_OK) != 0) {
        absent("ipmi", "node power",
               {ErrorCode::permission_denied, "permission denied: " + path.string(),
                fmt::format("run: sudo chgrp GROUP {0} && sudo chmod g+rw {0}, or set a udev rule "
                            "(docs/node-meters.md)",
                            path.string())});
        return std::nullopt;
      }
      target.device = path.string();
      return target;
    }
    absent("ipmi", "node power",
           {ErrorCode::not_found, host_.root.path(kDeviceFiles[0]).string() + " is not there",
            "if the machine has a management controller: modprobe ipmi_si ipmi_devintf, or read it over LAN "
            "(docs/node-meters.md)"});
    return std::nullopt;
  }

  void find_dcmi() {
    const auto response = link_->send(dcmi_command());
    const auto reading = response ? parse_dcmi(*response) : tl::unexpected(response.error());
    if (!reading) return absent("ipmi-dcmi", "node power", reading.error());
    if (!reading->active)
      out_.warnings.push_back({"dcmi-state",
                               fmt::format("{} reads {:.0f} W by DCMI although it says that measurement is not active",
                                           where_, reading->current_w),
                               "the reading is used; compare it with another source: ergometer check-meter RUN"});
    auto power = node_power_channel("dcmi_power_w", where_, "DCMI; controllers are often 1 to 10 s late");
    power.resolution = 1;
    std::vector<Channel> channels{power};
    if (reading->period_s && *reading->period_s <= kMaxRollingPeriod_s) {
      auto average = node_power_channel("dcmi_average_power_w", where_, "DCMI's mean, for comparison");
      average.method = Method::average;
      average.window = from_seconds(*reading->period_s);
      average.resolution = 1;
      average.in_total = false;
      channels.push_back(std::move(average));
    }
    add<DcmiSensor>(info_of("ipmi-dcmi", std::move(channels)));
  }

  void find_node_manager() {
    std::vector<Channel> channels;
    std::vector<std::uint8_t> domains;
    std::optional<Error> error;
    for (const std::uint8_t channel : {std::uint8_t{6}, std::uint8_t{0}}) {
      for (const auto& part : kNodeManagerParts) {
        const auto reading = NodeManagerSensor::ask(*link_, channel, part.domain);
        if (!reading) {
          error = reading.error();
          if (part.domain == 0) break;  // nobody there, or no such channel
          continue;
        }
        auto c = node_power_channel(part.column, where_, "Intel Node Manager");
        c.domain = part.name;
        c.scope = part.scope;
        c.resolution = 1;
        c.in_total = part.scope == Scope::node;
        if (!c.in_total) c.note += "; all sockets together: shown apart, never added to single sockets";
        channels.push_back(std::move(c));
        domains.push_back(part.domain);
      }
      if (!channels.empty()) return add<NodeManagerSensor>(info_of("ipmi-nm", std::move(channels)), channel, domains);
    }
    absent("ipmi-nm", "platform power", *error);
  }

  void find_xcc() {
    find_xcc_energy();
    const auto response = link_->send(xcc_power_command());
    const auto reading = response ? parse_xcc_power(*response) : tl::unexpected(response.error());
    if (!reading) return absent("ipmi-xcc", "XCC power", reading.error());
    std::vector<Channel> channels{node_power_channel("xcc_power_w", where_, "Lenovo XCC: board and GPU board")};
    if (reading->gpu_w)
      for (const auto* part : {"board", "gpu_board"}) {
        auto c = node_power_channel(fmt::format("xcc_{}_power_w", part), where_, "Lenovo XCC, a part of the node");
        c.domain = fmt::format("xcc/{}", part);
        c.scope = Scope::rail;
        c.in_total = false;
        channels.push_back(std::move(c));
      }
    for (auto& c : channels) c.resolution = 1;
    add<XccPowerSensor>(info_of("ipmi-xcc-power", std::move(channels)));
  }

  void find_xcc_energy() {
    const auto response = link_->send(xcc_energy_command());
    const auto reading = response ? parse_xcc_energy(*response) : tl::unexpected(response.error());
    if (!reading) return absent("ipmi-xcc", "XCC energy", reading.error());
    Channel c = node_power_channel("xcc_mean_power_w", where_, "Lenovo XCC, mean power of its last samples");
    if (reading->energy_j) {
      c.column = "xcc_energy_j";
      as_energy_counter(c);
      c.range = 4294967296.0;
      c.resolution = 1e-3;
      c.note = "Lenovo XCC's counter, at the controller's own time";
    }
    add<XccEnergySensor>(info_of("ipmi-xcc-energy", {std::move(c)}, true));
  }

  template <class S, class... More>
  void add(SensorInfo info, More... more) {
    if (info.interface.starts_with("ipmi-xcc")) info.interface = "ipmi-xcc";
    info.note = where_;
    out_.sensors.push_back(std::make_shared<S>(std::move(info), host_.clock, link_, std::move(more)...));
  }

  const Host& host_;
  const DiscoverOptions& options_;
  Discovery& out_;
  std::shared_ptr<IpmiLink> link_;
  std::string where_;
  bool lan_ = false;
};

}  // namespace

void discover_ipmi(const Host& host, const DiscoverOptions& options, Discovery& out) {
  Finder(host, options, out).find();
}

}  // namespace ergometer
