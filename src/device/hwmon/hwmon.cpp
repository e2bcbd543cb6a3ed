#include "device/hwmon/hwmon.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <system_error>
#include <utility>

#include "base/number.hpp"
#include "base/text.hpp"
#include "device/kernel_file.hpp"

namespace ergometer {
namespace {
namespace fs = std::filesystem;

// One file of a chip. Power is always in microwatts and energy in microjoules, whatever the size of the number.
struct Attribute {
  fs::path file;
  Channel channel;
};

// The files that one sensor reads: a chip, or all chips of a Grace board.
struct Chip {
  std::string name;    // of the sensor
  std::string device;  // real path of the device, which unlike hwmonN is stable
  Nanos interval{0};
  std::vector<Attribute> attributes;
};

class HwmonSensor final : public Sensor {
 public:
  HwmonSensor(SensorInfo info, const Chip& chip) : Sensor(std::move(info)) {
    for (const auto& a : chip.attributes) files_.emplace_back(a.file, a.channel.column);
  }

  Result<void> read(Readings& out) override {
    std::vector<std::optional<double>> values;
    values.reserve(files_.size());
    for (auto& file : files_) {
      const auto micro = file.read(out);
      values.push_back(micro ? std::optional(static_cast<double>(*micro) / 1e6) : std::nullopt);
    }
    if (std::ranges::none_of(values, [](const auto& v) { return v.has_value(); }))
      return tl::unexpected(*files_.front().error());
    out.add(std::move(values));
    return {};
  }

 private:
  std::vector<NumberFile> files_;
};

std::optional<double> micro_of(const fs::path& file) {
  const auto value = NumberFile(file, "").probe();
  return value && *value > 0 ? std::optional(static_cast<double>(*value) / 1e6) : std::nullopt;
}

// "power12_average": 12 with the kind "power" and the rest "average"; 0 if the name has another form.
int attribute_number(std::string_view name, std::string_view kind, std::string_view rest) {
  if (!name.starts_with(kind) || !name.ends_with(rest) || name.size() <= kind.size() + rest.size()) return 0;
  const auto number = parse_uint(name.substr(kind.size(), name.size() - kind.size() - rest.size()));
  return number && *number > 0 && *number < 1000 ? static_cast<int>(*number) : 0;
}

// What a meter is about, by the text in power1_oem_info of the ACPI meters of Grace and Grace-Hopper boards.
struct GraceMeter {
  const char* prefix;
  const char* word;  // of column and domain
  Scope scope;
  bool in_total;
  const char* note;
};
constexpr std::array<GraceMeter, 4> kGraceMeters{{
    {"Module Power Socket ", "module", Scope::module, false, "contains the Grace package and its GPU; shown apart"},
    {"Grace Power Socket ", "package", Scope::package, true, "the whole Grace socket"},
    {"CPU Power Socket ", "core", Scope::core, false, "inside its package"},
    {"SysIO Power Socket ", "sysio", Scope::rail, false, "inside its package"},
}};

const GraceMeter* grace_meter(std::string_view oem_info, int& socket) {
  for (const auto& meter : kGraceMeters) {
    if (!oem_info.starts_with(meter.prefix)) continue;
    const auto number = parse_uint(oem_info.substr(std::string_view(meter.prefix).size()));
    if (!number || *number > 1 << 16) continue;
    socket = static_cast<int>(*number);
    return &meter;
  }
  return nullptr;
}

// The number N of drm/cardN below a graphics device, or -1.
int card_number(const fs::path& device) {
  for (const auto& name : list_dir(device / "drm"))
    if (name.starts_with("card"))
      if (const auto number = parse_uint(std::string_view(name).substr(4))) return static_cast<int>(*number);
  return -1;
}

// Scope, domain and sum rule of a channel by the chip it belongs to.
void describe(Channel& c, std::string_view chip, const fs::path& hwmon, const fs::path& folder, int number) {
  if (chip == "power_meter") {
    int socket = 0;
    const auto* meter = grace_meter(short_text(folder / fmt::format("power{}_oem_info", number)), socket);
    c.scope = meter ? meter->scope : Scope::node;
    c.domain = meter ? fmt::format("{}/{}", meter->word, socket) : "node";
    c.in_total = !meter || meter->in_total;
    c.note = meter ? meter->note : "whole node: contains all other parts, so it is never added to them";
    if (meter) c.column = fmt::format("{}_{}_power_w", meter->word, socket);
    return;
  }
  c.in_total = false;
  if (const int card = card_number(hwmon / "device"); card >= 0) {
    c.scope = Scope::gpu;
    c.domain = fmt::format("gpu-card/{}", card);
    c.note = "graphics chip: recorded, not added";
    return;
  }
  c.scope = Scope::rail;
  c.domain = fmt::format("rail/{}", file_name_of(chip));
  c.note = "chip of unknown extent: recorded, not added";
}

std::optional<Nanos> window_of(const fs::path& folder, int number) {
  const auto ms = NumberFile(folder / fmt::format("power{}_average_interval", number), "").probe();
  if (!ms || *ms <= 0 || *ms > 3'600'000) return std::nullopt;
  return std::chrono::milliseconds(*ms);
}

std::optional<Channel> attribute_channel(const std::string& file, const std::string& chip, const fs::path& hwmon,
                                         const fs::path& folder) {
  Channel c;
  int number = 0;
  const char* kind = "power";
  if ((number = attribute_number(file, kind, "_average"))) {
    c.method = Method::average;
    c.window = window_of(folder, number);
  } else if ((number = attribute_number(file, kind, "_input"))) {
    c.method = Method::integral;
  } else if ((number = attribute_number(file, kind = "energy", "_input"))) {
    c.method = Method::counter;
    c.behaviour = Behaviour::counter;
  } else {
    return std::nullopt;
  }
  const bool power = c.behaviour == Behaviour::gauge;
  c.quantity = power ? Quantity::power : Quantity::energy;
  c.unit = power ? "W" : "J";
  c.column = file + (power ? "_w" : "_j");
  c.resolution = 1e-6;
  const auto label = short_text(folder / fmt::format("{}{}_label", kind, number));
  c.device = label.empty() ? chip : fmt::format("{} {}", chip, label);
  if (power) {
    c.max_power_w = micro_of(folder / fmt::format("power{}_cap_max", number));
    if (!c.max_power_w) c.max_power_w = micro_of(folder / fmt::format("power{}_cap", number));
  }
  describe(c, chip, hwmon, folder, number);
  return c;
}

struct Denied {
  std::vector<std::string> files;
};

// Attributes stand beside `name`, or with some drivers one level down in device/.
std::vector<Attribute> attributes_of(const fs::path& hwmon, const std::string& chip, Denied& denied, Discovery& out) {
  std::vector<Attribute> found;
  for (const auto& folder : {hwmon, hwmon / "device"}) {
    for (const auto& file : list_dir(folder)) {
      auto channel = attribute_channel(file, chip, hwmon, folder);
      if (!channel) continue;
      const auto value = NumberFile(folder / file, "").probe();
      if (value)
        found.push_back({folder / file, std::move(*channel)});
      else if (value.error().code == ErrorCode::permission_denied)
        denied.files.push_back((folder / file).string());
      else
        out.node.absences.push_back({"hwmon", fmt::format("{} {}", chip, file), value.error().message, ""});
    }
    // The second folder is only another view of the same files where the first has some.
    if (!found.empty()) break;
  }
  return found;
}

// Chips that a backend of their own reads.
bool has_own_backend(std::string_view chip) {
  return chip == "amdgpu" || chip == "xe" || chip.starts_with("i915") || chip == "ina3221";
}

bool is_grace(const std::vector<Attribute>& attributes) {
  return std::ranges::any_of(attributes, [](const Attribute& a) { return a.channel.column.ends_with("_power_w"); });
}

// Reading faster than half the device's own averaging window brings nothing; a chip nobody knows is read gently.
Nanos interval_of(const std::vector<Attribute>& attributes, Nanos wanted) {
  const Nanos second = std::chrono::seconds(1);
  Nanos window{0};
  for (const auto& a : attributes) {
    window = std::max(window, a.channel.window.value_or(Nanos{0}));
    if (a.channel.scope == Scope::rail && !a.channel.column.starts_with("sysio")) return std::max(wanted, second);
  }
  return std::max(wanted, std::min(window / 2, second));
}

std::vector<Chip> collect_chips(const Host& host, Nanos wanted, Denied& denied, Discovery& out) {
  std::vector<Chip> chips;
  Chip grace{"hwmon-grace", "Grace", Nanos{0}, {}};
  const auto top = host.root.path("/sys/class/hwmon");
  for (const auto& entry : list_dir(top)) {
    const auto hwmon = top / entry;
    auto name = short_text(hwmon / "name");
    if (name.empty()) name = short_text(hwmon / "device" / "name");
    if (has_own_backend(name)) continue;
    auto attributes = name.empty() ? std::vector<Attribute>{} : attributes_of(hwmon, name, denied, out);
    if (attributes.empty()) continue;
    if (is_grace(attributes)) {
      std::ranges::move(attributes, std::back_inserter(grace.attributes));
      continue;
    }
    std::error_code ec;
    const auto device = fs::canonical(hwmon / "device", ec);
    chips.push_back({"hwmon-" + file_name_of(name), ec ? hwmon.string() : device.string(),
                     interval_of(attributes, wanted), std::move(attributes)});
  }
  std::ranges::stable_sort(chips, {}, &Chip::device);
  if (!grace.attributes.empty()) {
    std::ranges::stable_sort(grace.attributes, {}, [](const Attribute& a) { return a.channel.column; });
    grace.interval = interval_of(grace.attributes, wanted);
    chips.push_back(std::move(grace));
  }
  return chips;
}

// Chips of one name are numbered in the order of their devices; a column that comes twice in a sensor too.
void make_names_unique(std::vector<Chip>& chips) {
  std::map<std::string, int> names;
  for (auto& chip : chips) {
    if (const int n = ++names[chip.name]; n > 1) chip.name += fmt::format("-{}", n);
    std::map<std::string, int> columns;
    for (auto& a : chip.attributes) {
      auto& column = a.channel.column;
      if (const int n = ++columns[column]; n > 1) column.insert(column.rfind('_'), fmt::format("_{}", n));
    }
  }
}

}  // namespace

void discover_hwmon(const Host& host, const DiscoverOptions& options, Discovery& out) {
  Denied denied;
  auto chips = collect_chips(host, options.interval.value_or(std::chrono::milliseconds(100)), denied, out);
  make_names_unique(chips);
  for (const auto& chip : chips) {
    SensorInfo info;
    info.name = chip.name;
    info.interface = "hwmon";
    info.interval = chip.interval;
    info.note = chip.device;
    for (const auto& a : chip.attributes) info.channels.push_back(a.channel);
    out.sensors.push_back(std::make_shared<HwmonSensor>(std::move(info), chip));
  }
  if (!denied.files.empty()) {
    const auto reason = fmt::format("permission denied: {}", fmt::join(denied.files, ", "));
    const auto remedy = fmt::format("sudo chmod a+r {}", fmt::join(denied.files, " "));
    out.node.absences.push_back({"hwmon", "power or energy", reason, remedy, true});
    out.warnings.push_back({"sensor-forbidden", "hwmon may not be read: " + reason, remedy});
  } else if (chips.empty()) {
    out.node.absences.push_back(
        {"hwmon", "power or energy",
         "no chip in " + host.root.path("/sys/class/hwmon").string() + " has a power or energy file",
         "for an ACPI power meter: sudo modprobe acpi_power_meter; on Grace also boot with "
         "acpi_power_meter.force_cap_on=y"});
  }
}

}  // namespace ergometer
