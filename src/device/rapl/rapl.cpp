#include "device/rapl/rapl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "device/rapl/powercap.hpp"

namespace ergometer {
namespace {
using namespace rapl;

constexpr const char* kPerfRemedy =
    "for perf: sudo sysctl kernel.perf_event_paranoid=0, or sudo setcap cap_perfmon+ep on the program";
constexpr const char* kPowercapRemedy = "for powercap: sudo chmod a+r /sys/class/powercap/*/energy_uj";
constexpr const char* kDaemonRemedy = "for all members of a group: run ergometerd (docs/daemon.md)";

bool allowed(const DiscoverOptions& options, std::string_view variant) {
  return options.only.empty() || std::ranges::count(options.only, "rapl") > 0 ||
         std::ranges::count(options.only, variant) > 0;
}

// A counter must be read well before it can wrap twice: at a quarter of range over power, 2 kW where no bound is known.
Nanos interval_within_range(Nanos wanted, const std::vector<Zone>& zones) {
  for (const auto& zone : zones)
    if (zone.channel.range)
      wanted = std::min(wanted, from_seconds(*zone.channel.range / zone.channel.max_power_w.value_or(2000.0) / 4));
  return std::max(wanted, Nanos(std::chrono::milliseconds(1)));
}

// What the discovery knows of one interface that gave no sensor.
struct Missing {
  bool denied = false;
  std::string reason;
};

void report_missing(const Missing& perf, const Missing& powercap, bool one_only, Discovery& out) {
  Absence absence{"rapl", "processor energy", {}, {}};
  for (const auto* m : {&perf, &powercap})
    if (!m->reason.empty()) absence.reason += (absence.reason.empty() ? "" : "; ") + m->reason;
  std::string remedy;
  if (perf.denied) remedy = kPerfRemedy;
  if (powercap.denied) remedy += (remedy.empty() ? "" : "; ") + std::string(kPowercapRemedy);
  if (remedy.empty())
    remedy = one_only ? "allow the other interface too: --sensors rapl"
                      : "sudo modprobe intel_rapl_msr (AMD too); virtual machines have no such counter";
  absence.forbidden = perf.denied || powercap.denied;
  if (absence.forbidden) remedy += fmt::format("; {}", kDaemonRemedy);
  absence.remedy = remedy;
  if (absence.forbidden)
    out.warnings.push_back({"sensor-forbidden", "the processor's energy may not be read: " + absence.reason, remedy});
  out.node.absences.push_back(std::move(absence));
}

// Zones of an else readable interface that are forbidden: said once for all of them.
void report_denied_zones(const std::vector<std::string>& denied, Discovery& out) {
  const auto reason = fmt::format("permission denied: {}", fmt::join(denied, ", "));
  const auto remedy = fmt::format("{}; {}", kPowercapRemedy, kDaemonRemedy);
  out.node.absences.push_back({"rapl-powercap", "some zones", reason, remedy, true});
  out.warnings.push_back({"sensor-forbidden", "some energy zones may not be read: " + reason, remedy});
}

}  // namespace

void discover_rapl(const Host& host, const DiscoverOptions& options, Discovery& out) {
  auto calls = system_perf_calls();
  if (!host.root.is_real()) calls.open = [](std::uint32_t, std::uint64_t, int, int) { return -EOPNOTSUPP; };
  discover_rapl_with(host, options, calls, out);
}

void discover_rapl_with(const Host& host, const DiscoverOptions& options, const PerfCalls& calls, Discovery& out) {
  const bool use_perf = allowed(options, "rapl-perf"), use_powercap = allowed(options, "rapl-powercap");
  const Nanos wanted = options.interval.value_or(std::chrono::milliseconds(100));
  Missing perf, powercap;

  PowercapScan scan;
  if (use_powercap) scan = scan_powercap(host.root);
  auto& absences = out.node.absences;
  absences.insert(absences.end(), scan.absences.begin(), scan.absences.end());
  if (use_powercap && scan.zones.empty()) {
    powercap.denied = !scan.denied.empty();
    powercap.reason = powercap.denied ? fmt::format("permission denied: {}", fmt::join(scan.denied, ", "))
                                      : "no usable zone in " + host.root.path("/sys/class/powercap").string();
  }

  std::shared_ptr<Sensor> by_perf;
  if (use_perf) {
    const auto pmu = read_power_pmu(host.root);
    auto sensor = pmu ? open_perf_sensor(host.root, *pmu, calls, scan.zones, wanted, absences)
                      : Result<std::shared_ptr<Sensor>>(tl::unexpected(pmu.error()));
    if (sensor)
      by_perf = *sensor;
    else
      perf = {sensor.error().code == ErrorCode::permission_denied, sensor.error().message};
  }

  if (by_perf) out.sensors.push_back(by_perf);
  if (!scan.zones.empty()) {
    if (by_perf) {
      // Recorded beside perf at a low rate: it stands in where a perf counter turns out to be stuck.
      const auto interval = interval_within_range(std::max(wanted, Nanos(std::chrono::seconds(1))), scan.zones);
      out.sensors.push_back(make_powercap_sensor("rapl-powercap", interval, "stands in for perf", scan.zones));
    } else {
      const std::string note = use_perf ? fmt::format("source powercap, because perf gives nothing: {}{}", perf.reason,
                                                      perf.denied ? fmt::format(" ({})", kPerfRemedy) : "")
                                        : "source powercap";
      out.sensors.push_back(make_powercap_sensor("rapl", interval_within_range(wanted, scan.zones), note, scan.zones));
    }
    if (!scan.denied.empty() && !by_perf) report_denied_zones(scan.denied, out);
  }
  if (!by_perf && scan.zones.empty()) report_missing(perf, powercap, use_perf != use_powercap, out);
}

}  // namespace ergometer
