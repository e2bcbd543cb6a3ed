#include "device/rapl/powercap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/number.hpp"
#include "base/text.hpp"
#include "device/kernel_file.hpp"

namespace ergometer::rapl {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kPreferred = "intel-rapl:";
constexpr std::string_view kDuplicate = "intel-rapl-mmio:";  // the same counters through another bus, on client parts

bool is_duplicate(std::string_view id) { return id.starts_with(kDuplicate); }

// Zone folders, parents before their children. The class folder holds links to all zones, a copied tree may hold only
// the nested form.
void collect_zones(const fs::path& folder, std::vector<fs::path>& out, std::set<std::string>& seen) {
  std::vector<fs::path> here;
  for (const auto& name : list_dir(folder))
    if ((name.starts_with(kPreferred) || name.starts_with(kDuplicate)) && seen.insert(name).second)
      here.push_back(folder / name);
  out.insert(out.end(), here.begin(), here.end());
  for (const auto& zone : here) collect_zones(zone, out, seen);
}

std::optional<double> positive_micro(const fs::path& file) {
  const auto text = read_file(file, 4096);
  const auto value = text ? parse_int(*text) : std::nullopt;  // 64 bits: limits above 2^31 uW exist
  if (!value || *value <= 0) return std::nullopt;
  return static_cast<double>(*value) / 1e6;
}

// The largest power that the zone itself names. The limits count beside the maxima because a short-term limit may lie
// above the long-term constraint's maximum.
std::optional<double> max_power_w(const fs::path& zone) {
  std::optional<double> out;
  for (int i = 0; i < 3; ++i)
    for (const char* what : {"max_power_uw", "power_limit_uw"})
      if (const auto w = positive_micro(zone / fmt::format("constraint_{}_{}", i, what))) out = std::max(out, w);
  return out;
}

Channel zone_channel(const fs::path& folder, const std::string& id, const std::string& name, const Domain& domain) {
  Channel c = energy_channel(domain);
  c.device = name;
  c.range = positive_micro(folder / "max_energy_range_uj");
  // The counter behind has 32 bits, so its range tells the unit; the file itself counts whole microjoules.
  if (c.range) c.resolution = std::max(1e-6, *c.range / std::ldexp(1.0, 32));
  c.max_power_w = max_power_w(folder);
  c.note = c.note.empty() ? id : fmt::format("{}: {}", id, c.note);
  return c;
}

std::optional<std::int64_t> energy_of(const Zone& zone) {
  const auto value = NumberFile(zone.energy_file, "").probe();
  return value ? std::optional(*value) : std::nullopt;
}

// Two views of one counter: the second's value lies between two reads of the first, microseconds apart.
bool mirrors(const Zone& first, const Zone& second) {
  const auto before = energy_of(first), between = energy_of(second), after = energy_of(first);
  return before && between && after && *before <= *between && *between <= *after;
}

void leave_out(Zone& zone, std::string_view why) {
  zone.channel.in_total = false;
  zone.channel.note = fmt::format("{}: {}", zone.id, why);
}

bool same_socket_part(const Zone& a, const Zone& b) {
  return a.domain.kind == b.domain.kind && a.domain.package == b.domain.package;
}

// Dies of one package: mirrors collapse to the first, which then stands for the package; dies that count apart keep a
// domain each.
void settle_dies(std::vector<Zone>& zones) {
  std::vector<Zone*> apart;
  for (auto& zone : zones) {
    if (!zone.domain.die || is_duplicate(zone.id)) continue;
    const auto original = std::ranges::find_if(
        apart, [&](const Zone* earlier) { return same_socket_part(*earlier, zone) && mirrors(*earlier, zone); });
    if (original == apart.end())
      apart.push_back(&zone);
    else
      leave_out(zone, fmt::format("mirror of {}, the same counter of the whole socket", (*original)->channel.device));
  }
  for (Zone* zone : apart)
    if (std::ranges::count_if(apart, [&](const Zone* z) { return same_socket_part(*z, *zone); }) == 1)
      zone->channel.domain = domain_name({zone->domain.kind, zone->domain.package, std::nullopt, {}});
}

// The twin of a preferred zone through the other bus, and any name that comes twice.
void settle_duplicates(std::vector<Zone>& zones) {
  for (std::size_t i = 0; i < zones.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (zones[i].domain == zones[j].domain && zones[i].domain.kind != Kind::unknown) {
        leave_out(zones[i], fmt::format("duplicate of {}, the same counter", zones[j].id));
        zones[i].channel.domain = zones[j].channel.domain;
        break;
      }
}

void make_columns_unique(std::vector<Zone>& zones) {
  std::set<std::string> seen;
  for (auto& zone : zones) {
    auto& column = zone.channel.column;
    if (is_duplicate(zone.id)) column = "mmio_" + column;
    const auto base = column.substr(0, column.size() - std::string_view("_energy_j").size());
    for (int n = 2; !seen.insert(column).second; ++n) column = fmt::format("{}_{}_energy_j", base, n);
  }
}

class PowercapSensor final : public Sensor {
 public:
  PowercapSensor(SensorInfo info, const std::vector<Zone>& zones) : Sensor(std::move(info)) {
    for (const auto& zone : zones) files_.emplace_back(zone.energy_file, zone.channel.column);
  }

  Result<void> read(Readings& out) override {
    std::vector<std::optional<double>> values;
    values.reserve(files_.size());
    bool any = false;
    for (auto& file : files_) {
      auto uj = file.read(out);
      if (uj && *uj < 0) uj.reset();  // no kernel counter is negative
      any = any || uj;
      values.push_back(uj ? std::optional(static_cast<double>(*uj) / 1e6) : std::nullopt);
    }
    if (!any)
      return tl::unexpected(files_.front().error() ? *files_.front().error()
                                                   : Error{ErrorCode::corrupt, "no zone holds a counter", {}});
    out.add(std::move(values));
    return {};
  }

 private:
  std::vector<NumberFile> files_;
};

// Container runtimes cover the zones' own folder: their links lead nowhere, and nothing inside tells that they exist.
void add_hidden_zones(const fs::path& folder, std::vector<std::string>& denied) {
  for (const auto& name : list_dir(folder)) {
    std::error_code ec;
    const auto link = folder / name;
    if (name.find(':') != std::string::npos && fs::is_symlink(link, ec) && !fs::exists(link, ec))
      denied.push_back(fmt::format("{} (hidden in this container)", link.string()));
  }
}

}  // namespace

std::vector<ZoneFolder> zone_folders(const HostRoot& root, std::vector<Absence>* damaged) {
  std::vector<fs::path> folders;
  std::set<std::string> seen;
  collect_zones(root.path("/sys/class/powercap"), folders, seen);
  // Preferred zones first, so that a twin is always the later one.
  std::ranges::stable_partition(folders, [](const fs::path& f) { return !is_duplicate(f.filename().string()); });

  std::vector<ZoneFolder> zones;
  std::map<std::string, Domain> domains;  // by id, for the parents
  for (const auto& folder : folders) {
    const std::string id = folder.filename().string();
    const auto name_text = read_file(folder / "name", 4096);
    if (!name_text || trim(*name_text).empty()) {
      if (damaged)
        damaged->push_back(
            {"rapl-powercap", "zone " + id, name_text ? "its name is empty" : name_text.error().message, ""});
      continue;
    }
    const std::string name(trim(*name_text).substr(0, 64));
    const auto parent = domains.find(id.substr(0, id.rfind(':')));
    const auto domain = parse_zone_name(name, parent == domains.end() ? nullptr : &parent->second);
    domains[id] = domain;
    zones.push_back({folder, id, name, domain});
  }
  return zones;
}

PowercapScan scan_powercap(const HostRoot& root) {
  PowercapScan out;
  for (const auto& [folder, id, name, domain] : zone_folders(root, &out.absences)) {
    Zone zone{folder / "energy_uj", id, domain, {}};
    zone.channel = zone_channel(folder, id, name, zone.domain);
    const auto value = NumberFile(zone.energy_file, "").probe();
    if (!value && value.error().code == ErrorCode::permission_denied) {
      out.denied.push_back(zone.energy_file.string());
      continue;
    }
    if (!value) {
      out.absences.push_back({"rapl-powercap", fmt::format("zone {} ({})", id, name), value.error().message, ""});
      continue;
    }
    if (zone.domain.kind == Kind::unknown)
      out.absences.push_back({"rapl-powercap", fmt::format("zone {} ({})", id, name),
                              "unknown name: recorded, but not added to any total", ""});
    out.zones.push_back(std::move(zone));
  }
  if (out.zones.empty()) add_hidden_zones(root.path("/sys/class/powercap"), out.denied);
  settle_dies(out.zones);
  settle_duplicates(out.zones);
  make_columns_unique(out.zones);
  return out;
}

std::shared_ptr<Sensor> make_powercap_sensor(std::string name, Nanos interval, std::string note,
                                             std::vector<Zone> zones) {
  SensorInfo info;
  info.name = std::move(name);
  info.interface = "rapl-powercap";
  info.interval = interval;
  info.note = std::move(note);
  for (const auto& zone : zones) info.channels.push_back(zone.channel);
  return std::make_shared<PowercapSensor>(std::move(info), zones);
}

}  // namespace ergometer::rapl
