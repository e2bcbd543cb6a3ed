#include "device/jetson/jetson.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/number.hpp"
#include "base/text.hpp"
#include "device/drm_card.hpp"
#include "device/kernel_file.hpp"

namespace ergometer {
namespace {
namespace fs = std::filesystem;

// One supply line. Its power is a file in milliwatts, or the product of a voltage and a current.
struct Rail {
  std::string name;     // "VDD_IN"
  fs::path milliwatts;  // "" where the driver has none
  fs::path millivolts, milliamperes;
  std::optional<Nanos> window;  // over which the chip averages
  std::string note;
};

class RailCell {
 public:
  explicit RailCell(const Rail& rail)
      : product_(rail.milliwatts.empty()),
        first_(product_ ? rail.millivolts : rail.milliwatts, rail.name),
        second_(rail.milliamperes, rail.name + " current") {}
  std::optional<double> read(Readings& out) {
    const auto first = first_.read(out);
    if (!product_) return first ? std::optional(static_cast<double>(*first) / 1e3) : std::nullopt;
    const auto second = second_.read(out);
    if (!first || !second) return std::nullopt;
    return static_cast<double>(*first) * static_cast<double>(*second) / 1e6;
  }
  [[nodiscard]] const Error* error() const { return first_.error() || !product_ ? first_.error() : second_.error(); }

 private:
  bool product_;
  NumberFile first_, second_;
};

class RailSensor final : public Sensor {
 public:
  RailSensor(SensorInfo info, const std::vector<Rail>& rails) : Sensor(std::move(info)) {
    for (const auto& rail : rails) cells_.emplace_back(rail);
  }
  Result<void> read(Readings& out) override {
    std::vector<std::optional<double>> values;
    for (auto& cell : cells_) values.push_back(cell.read(out));
    if (std::ranges::all_of(cells_, [](const RailCell& cell) { return cell.error() != nullptr; }))
      return tl::unexpected(*cells_.front().error());
    out.add(std::move(values));
    return {};
  }

 private:
  std::vector<RailCell> cells_;
};

// The driver of newer systems: a hwmon chip "ina3221" with inK_label, inK_input (mV) and currK_input (mA). Lines 4 and
// above are shunts and sums, not supply lines.
void find_hwmon_rails(const HostRoot& root, std::vector<Rail>& rails, Discovery& out) {
  const auto top = root.path("/sys/class/hwmon");
  for (const auto& entry : list_dir(top)) {
    const auto folder = top / entry;
    if (short_text(folder / "name") != "ina3221") continue;
    const auto samples = short_text(folder / "samples");
    const auto update_ms = parse_uint(short_text(folder / "update_interval"));
    for (int k = 1; k <= 3; ++k) {
      Rail rail;
      rail.name = short_text(folder / fmt::format("in{}_label", k));
      if (rail.name.empty() || rail.name == "NC") continue;
      if (short_text(folder / fmt::format("in{}_enable", k)) == "0") {
        out.node.absences.push_back(
            {"jetson", "rail " + rail.name, "switched off in the chip",
             fmt::format("echo 1 | sudo tee {}", (folder / fmt::format("in{}_enable", k)).string())});
        continue;
      }
      rail.millivolts = folder / fmt::format("in{}_input", k);
      rail.milliamperes = folder / fmt::format("curr{}_input", k);
      if (update_ms && *update_ms > 0 && *update_ms < 3'600'000) rail.window = std::chrono::milliseconds(*update_ms);
      if (!samples.empty()) rail.note = fmt::format("the chip averages {} samples", samples);
      rails.push_back(std::move(rail));
    }
  }
}

// The driver of older systems: iio devices below "ina3221x" with rail_name_K and in_powerK_input in mW.
void find_iio_rails(const HostRoot& root, std::vector<Rail>& rails) {
  const auto top = root.path("/sys/bus/i2c/drivers/ina3221x");
  for (const auto& chip : list_dir(top)) {
    for (const auto& entry : list_dir(top / chip)) {
      if (!entry.starts_with("iio:device")) continue;
      const auto folder = top / chip / entry;
      for (int k = 0; k <= 2; ++k) {
        Rail rail;
        rail.name = short_text(folder / fmt::format("rail_name_{}", k));
        if (rail.name.empty() || rail.name == "NC") continue;
        rail.milliwatts = folder / fmt::format("in_power{}_input", k);
        rails.push_back(std::move(rail));
      }
    }
  }
}

// The line through which the whole module is fed, by the names that NVIDIA's modules use.
bool feeds_module(const std::string& rail) { return rail == "VDD_IN" || rail == "POM_5V_IN"; }

Channel channel_of(const Rail& rail) {
  Channel c;
  c.column = lower(file_name_of(rail.name)) + "_power_w";
  c.quantity = Quantity::power;
  c.unit = "W";
  c.device = rail.name;
  c.method = rail.window ? Method::average : Method::integral;
  c.window = rail.window;
  c.period = rail.window;
  c.in_total = feeds_module(rail.name);
  c.scope = c.in_total ? Scope::module : Scope::rail;
  c.domain = c.in_total ? "module/0" : "rail/" + file_name_of(rail.name);
  c.note = c.in_total ? rail.note : "inside the module";
  return c;
}

}  // namespace

void discover_jetson(const Host& host, const DiscoverOptions& options, Discovery& out) {
  std::vector<Rail> found, rails;
  find_hwmon_rails(host.root, found, out);
  find_iio_rails(host.root, found);
  for (auto& rail : found) {
    Readings first_look;
    RailCell cell(rail);
    if (cell.read(first_look)) {
      rails.push_back(std::move(rail));
      continue;
    }
    const bool denied = cell.error()->code == ErrorCode::permission_denied;
    const auto files = rail.milliwatts.empty() ? rail.millivolts.string() + " " + rail.milliamperes.string()
                                               : rail.milliwatts.string();
    out.node.absences.push_back(
        {"jetson", "rail " + rail.name, cell.error()->message, denied ? "sudo chmod a+r " + files : ""});
  }
  if (rails.empty()) {
    if (found.empty())
      out.node.absences.push_back({"jetson", "power rails",
                                   "no INA3221 chip with named rails in " + host.root.path("/sys/class/hwmon").string(),
                                   ""});
    return;
  }
  std::ranges::stable_sort(rails, {}, &Rail::name);
  if (std::ranges::none_of(rails, [](const Rail& rail) { return feeds_module(rail.name); }))
    out.node.absences.push_back({"jetson", "module power", "no rail VDD_IN: the rails are shown and not added up", ""});
  SensorInfo info;
  info.name = "jetson";
  info.interface = "jetson";
  info.interval = options.interval.value_or(std::chrono::milliseconds(100));
  std::map<std::string, int> columns;
  for (const auto& rail : rails) {
    Channel c = channel_of(rail);
    if (const int n = ++columns[c.column]; n > 1) {
      c.column.insert(c.column.size() - std::string_view("_power_w").size(), fmt::format("_{}", n));
      c.in_total = false;
    }
    // Reading faster than half the averaging time brings nothing.
    if (rail.window)
      info.interval = std::max(info.interval, std::min(*rail.window / 2, Nanos(std::chrono::seconds(1))));
    info.channels.push_back(std::move(c));
  }
  out.sensors.push_back(std::make_shared<RailSensor>(std::move(info), rails));
}

}  // namespace ergometer
