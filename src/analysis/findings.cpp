#include "analysis/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace ergometer {
namespace {

constexpr double kDisagree = 0.05;  // share by which two methods of one domain may differ, besides their uncertainty
constexpr std::size_t kMostNamed = 16;  // devices in one message
constexpr double kResolutions = 20;     // so many periods or windows make two methods comparable

std::string plural(std::size_t n, const char* one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s"); }

void find_counter_findings(const Domain& domain, const Candidate& c, std::vector<Warning>& out) {
  if (c.log.resets > 0)
    out.push_back({"counter-reset",
                   fmt::format("the energy counter of {} (sensor {}) started anew: {} without a value", domain.name,
                               c.sensor, plural(c.log.resets, "interval")),
                   c.fills.empty() ? "the total lacks these intervals; a power channel would fill them"
                                   : "these intervals are filled from the domain's power channel"});
  if (c.log.ambiguous > 0)
    out.push_back({"counter-ambiguous",
                   fmt::format("the energy counter of {} (sensor {}) may have gone round unseen in {}: possible are "
                               "{:.6f} J plus whole multiples of {:.6f} J",
                               domain.name, c.sensor, plural(c.log.ambiguous, "interval"),
                               c.log.ambiguous_delta.value_or(0), c.channel.range.value_or(0)),
                   "read the counter more often: --interval"});
}

}  // namespace

void find_domain_findings(const Domain& domain, const DomainEnergy& energy, std::vector<Warning>& out) {
  out.insert(out.end(), domain.warnings.begin(), domain.warnings.end());
  for (const auto& c : domain.candidates) {
    if (!c.channel.measured || !c.channel.in_total) continue;
    find_counter_findings(domain, c, out);
    // Counters bridge their gaps; a hole of theirs is a reset, told above.
    if (c.channel.behaviour == Behaviour::counter || c.gaps == 0 || *c.channel.method != energy.method) continue;
    const double bridged = c.shares[kRunRow].bridged;
    out.push_back(
        {"sample-gap",
         fmt::format("{} (sensor {}) has {}, the longest {:.3g} s: up to {:.6g} J are not in its energy", domain.name,
                     c.sensor, plural(c.gaps, "gap"), static_cast<double>(c.longest_gap_ns) / 1e9, bridged),
         "the machine was too busy to read the sensor, or the sensor did not answer"});
  }
  for (const auto& c : domain.candidates) {
    if (*c.channel.method != energy.method || !energy.energy_j || c.locked.empty()) continue;
    out.push_back(
        {"phase-locked",
         fmt::format("{} begins each time at the same point of the cycle in which {} (sensor {}) is read: what "
                     "lies between its readings is the same each time, and its error does not average out",
                     c.locked.front(), domain.name, c.sensor),
         "vary the length of the repetitions, or trust the counter over many of them"});
  }
  if (!energy.energy_j || !energy.measured) return;
  const auto too_slow = [&](Method method) {
    return std::any_of(domain.candidates.begin(), domain.candidates.end(), [&](const Candidate& c) {
      return *c.channel.method == method &&
             static_cast<double>(c.resolves_ns) / 1e9 * kResolutions > c.shares[kRunRow].covered_s;
    });
  };
  // What covers less of the run has less energy.
  const auto covered_s = [&](Method method) {
    double most = 0;
    for (const auto& c : domain.candidates)
      if (*c.channel.method == method) most = std::max(most, c.shares[kRunRow].covered_s);
    return most;
  };
  for (const auto& other : energy.alternatives) {
    if (covered_s(other.method) < kFullCoverage * covered_s(energy.method)) continue;
    if (!other.energy_j || other.method == Method::model || energy.coverage < kFullCoverage) continue;
    // In a run of a few of its periods a slow channel is late by design, not wrong.
    if (too_slow(other.method) || too_slow(energy.method)) continue;
    const double larger = std::max(*energy.energy_j, *other.energy_j);
    const double apart = std::abs(*energy.energy_j - *other.energy_j);
    const double tolerance =
        kDisagree * larger + std::hypot(energy.uncertainty_j.value_or(0), other.uncertainty_j.value_or(0));
    if (apart > tolerance) {
      out.push_back(
          {"methods-disagree",
           fmt::format("{}: {:.6g} J by {}, {:.6g} J by {}: {:.1f} % apart, more than the {:.1f} % that their "
                       "uncertainties and a tolerance of {:.0f} % allow",
                       domain.name, *energy.energy_j, to_word(energy.method), *other.energy_j, to_word(other.method),
                       100 * apart / larger, 100 * tolerance / larger, 100 * kDisagree),
           "look at both channels: ergometer export RUN --format csv --samples"});
      break;
    }
  }
}

void find_event_findings(const std::string& node, const std::vector<Event>& events, std::vector<Warning>& out) {
  struct Kind {
    const char *kind, *code, *text, *remedy;
  };
  static constexpr Kind kinds[] = {
      {"lost", "device-lost", "stopped answering", "look at the kernel's log (dmesg) and at nvidia-smi"},
      {"suspend", "suspended", "the machine slept; that time is not part of any duration",
       "keep it awake while measuring"},
      {"clock", "clock-jump", "the wall clock jumped; durations and energies are not affected", ""},
      {"rejected", "readings-rejected", "readings were impossible and left out", "update the driver"},
      {"stuck", "sensor-stuck", "readings stood still", "look at the device's driver"}};
  std::map<std::pair<std::size_t, std::string>, std::pair<std::size_t, std::string>> found;
  for (const auto& event : events)
    for (std::size_t k = 0; k < std::size(kinds); ++k)
      if (event.kind == kinds[k].kind) {
        auto& [count, detail] = found[{k, event.source}];
        if (count++ == 0) detail = event.detail;
      }
  for (const auto& [key, value] : found) {
    const Kind& kind = kinds[key.first];
    std::string message = fmt::format("{} on {}: {}", key.second, node, kind.text);
    if (!value.second.empty()) message += fmt::format(" ({})", value.second);
    if (value.first > 1) message += fmt::format(", {} times", value.first);
    out.push_back({kind.code, std::move(message), kind.remedy});
  }
}

void find_absences(const Node& node, const std::vector<Domain>& domains, const Manifest& manifest,
                   std::vector<Warning>& out) {
  const bool measured = std::any_of(domains.begin(), domains.end(), [](const Domain& d) {
    return d.claims_total && (d.scope == Scope::package || d.scope == Scope::module);
  });
  if (measured) return;
  for (const auto& absence : node.absences) {
    if (!absence.interface.starts_with("rapl") || absence.remedy.empty()) continue;
    const bool told = std::any_of(manifest.warnings.begin(), manifest.warnings.end(), [&](const Warning& w) {
      return w.remedy == absence.remedy || w.message.find(absence.reason) != std::string::npos;
    });
    if (!told) out.push_back({"sensor-missing", absence.what + ": " + absence.reason, absence.remedy});
    return;
  }
}

void find_total_findings(const Summary& summary, std::size_t inside, std::size_t expected, double coverage,
                         std::vector<Warning>& out) {
  if (!summary.run.energy_j) {
    out.push_back({"nothing-measured", "no energy was measured",
                   "ergometer doctor says which sensors this machine has and how to allow them"});
  } else if (inside < expected) {
    std::string missing;
    std::size_t named = 0, all = 0;
    for (const auto& node : summary.nodes)
      for (const auto& d : node.domains) {
        if (!d.in_total || d.energy_j || ++all > kMostNamed) continue;
        ++named;
        missing += fmt::format("{}{}{}{}", missing.empty() ? "; missing: " : ", ",
                               summary.nodes.size() > 1 ? node.name + " " : "", d.domain,
                               d.note.empty() ? "" : " (" + d.note + ")");
      }
    if (all > named) missing += fmt::format(" and {} more", all - named);
    out.push_back({"partial-total", fmt::format("the total holds {} of {} devices{}", inside, expected, missing),
                   "compare only runs that hold the same devices"});
  } else if (coverage < kFullCoverage) {
    out.push_back(
        {"partial-total",
         fmt::format("readings cover only {:.1f} % of the run for at least one device in the total", 100 * coverage),
         "what is missing is in no figure; see the coverage of each domain"});
  }
  const auto low = std::count_if(summary.regions.begin(), summary.regions.end(),
                                 [](const RegionEnergy& r) { return r.low_confidence; });
  if (low > 0)
    out.push_back(
        {"below-resolution",
         fmt::format("{} of {} region rows are shorter than the sensors resolve", low, summary.regions.size()),
         "look at longer regions, or at the sum over many"});
}

}  // namespace ergometer
