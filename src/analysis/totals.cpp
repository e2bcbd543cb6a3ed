#include "analysis/totals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

namespace ergometer {
namespace {

// "gpu/3" -> "3"; "module" -> "".
std::string_view number_of(std::string_view domain) {
  const auto slash = domain.find('/');
  return slash == std::string_view::npos ? std::string_view{} : domain.substr(slash + 1);
}

bool has_energy(const Domain& d) {
  return std::any_of(d.candidates.begin(), d.candidates.end(),
                     [](const Candidate& c) { return c.channel.measured && c.shares[kRunRow].covered_s > 0; });
}

bool is_measured(const Domain& d) {
  return std::any_of(d.candidates.begin(), d.candidates.end(), [](const Candidate& c) { return c.channel.measured; });
}

void exclude(Domain& d, const std::string& why) {
  d.counted = false;
  d.expected = false;
  if (d.note.empty() || d.claims_total) d.note = why;
}

void match_gpus(const Node& node, std::vector<Domain>& domains) {
  for (const auto& gpu : node.gpus) {
    const std::string name = fmt::format("gpu/{}", gpu.index);
    auto it = std::find_if(domains.begin(), domains.end(),
                           [&](const Domain& d) { return d.scope == Scope::gpu && d.name == name; });
    if (it == domains.end()) {
      Domain missing;
      missing.name = name;
      missing.scope = Scope::gpu;
      missing.counted = true;
      it = domains.insert(domains.end(), std::move(missing));
    }
    it->device = gpu.uuid.empty() ? it->device : gpu.uuid;
    it->visible = gpu.visible;
    if (gpu.state != "ok") it->note = gpu.note.empty() ? gpu.state : gpu.state + ": " + gpu.note;
    if (gpu.mig && it->note.empty()) it->note = "whole GPU, shared by its MIG slices";
    if (gpu.state == "part") exclude(*it, gpu.note);
    if (!gpu.visible) exclude(*it, "not usable by the command");
  }
}

// A processor whose counters are there but forbidden is listed with the reason, without a value.
void list_absent_package(const Node& node, std::vector<Domain>& domains) {
  if (std::any_of(domains.begin(), domains.end(), [](const Domain& d) { return d.scope == Scope::package; })) return;
  for (const auto& absence : node.absences) {
    if (!absence.interface.starts_with("rapl") || absence.remedy.empty()) continue;
    Domain missing;
    missing.name = "package";
    missing.scope = Scope::package;
    missing.expected = false;
    missing.note = absence.reason;
    domains.push_back(std::move(missing));
    return;
  }
}

void settle_modules(std::vector<Domain>& domains) {
  for (auto& module : domains) {
    if (module.scope != Scope::module || !module.counted || !has_energy(module)) continue;
    const auto number = number_of(module.name);
    const auto inside = [&](const Domain& d) {
      return (d.scope == Scope::gpu || d.scope == Scope::package || d.scope == Scope::dram) &&
             (number.empty() || number_of(d.name) == number);
    };
    const bool foreign = std::any_of(domains.begin(), domains.end(),
                                     [&](const Domain& d) { return d.scope == Scope::gpu && inside(d) && !d.visible; });
    if (foreign) {
      exclude(module, "contains a GPU that the command cannot use");
      continue;
    }
    for (auto& d : domains)
      if (inside(d) && d.visible) exclude(d, "inside " + module.name);
  }
}

// A meter of the whole node (or, failing that, platform) is the total only if nothing inside it is measured.
void settle_meters(std::vector<Domain>& domains) {
  if (std::any_of(domains.begin(), domains.end(), [](const Domain& d) { return d.counted && has_energy(d); })) return;
  for (const Scope scope : {Scope::node, Scope::psys}) {
    for (auto& meter : domains) {
      if (meter.scope != scope || !meter.claims_total || !has_energy(meter)) continue;
      for (auto& d : domains)
        if (&d != &meter && d.counted) exclude(d, "inside " + meter.name);
      meter.counted = meter.expected = true;
      meter.note.clear();
      return;
    }
  }
}

}  // namespace

void decide_totals(const Node& node, std::vector<Domain>& domains) {
  for (auto& d : domains) {
    switch (d.scope) {
      case Scope::module:
      case Scope::package:
      case Scope::dram:
      case Scope::gpu:
        d.counted = d.claims_total || !is_measured(d);
        d.expected = d.claims_total;
        break;
      case Scope::core:
      case Scope::uncore:
        exclude(d, "part of its package");
        break;
      case Scope::memory:
        exclude(d, "part of its GPU");
        break;
      case Scope::psys:
        exclude(d, "platform meter, contains the packages");
        break;
      case Scope::node:
        exclude(d, "node meter, contains the other domains");
        break;
      case Scope::rail:
      case Scope::tree:
      case Scope::system:
        exclude(d, "shown for comparison");
        break;
    }
  }
  match_gpus(node, domains);
  list_absent_package(node, domains);
  settle_modules(domains);
  settle_meters(domains);
  std::sort(domains.begin(), domains.end(), [](const Domain& a, const Domain& b) {
    return std::tuple(a.name.size(), std::string_view(a.name), a.scope) <
           std::tuple(b.name.size(), std::string_view(b.name), b.scope);
  });
  std::stable_sort(domains.begin(), domains.end(), [](const Domain& a, const Domain& b) { return a.scope < b.scope; });
}

Total total_of(const std::vector<Domain>& domains, const std::vector<DomainEnergy>& energies) {
  Total total;
  double variance = 0;
  for (std::size_t i = 0; i < energies.size(); ++i) {
    const auto& e = energies[i];
    const bool expected = domains[i].expected;
    total.expected += expected ? 1 : 0;
    if (!domains[i].counted || !e.energy_j) continue;
    if (!e.measured) {
      total.modelled_j = total.modelled_j.value_or(0) + *e.energy_j;
    } else if (e.in_total) {
      total.coverage = total.energy_j ? std::min(total.coverage, e.coverage) : e.coverage;
      total.energy_j = total.energy_j.value_or(0) + *e.energy_j;
      variance += square(e.uncertainty_j.value_or(0)) - square(e.parts.clock_j);
      total.clock_j += e.parts.clock_j;
      total.inside += expected ? 1 : 0;
    }
  }
  if (total.energy_j) total.uncertainty_j = std::sqrt(std::max(0.0, variance) + square(total.clock_j));
  return total;
}

void add_total(Total& sum, const Total& other) {
  const auto add = [](std::optional<double>& a, const std::optional<double>& b) {
    if (b) a = a.value_or(0) + *b;
  };
  if (other.energy_j) {
    sum.coverage = sum.energy_j ? std::min(sum.coverage, other.coverage) : other.coverage;
    const double apart = square(sum.uncertainty_j.value_or(0)) + square(other.uncertainty_j.value_or(0));
    sum.uncertainty_j = std::sqrt(std::max(0.0, apart + 2 * sum.clock_j * other.clock_j));
    sum.clock_j += other.clock_j;
  }
  add(sum.energy_j, other.energy_j);
  add(sum.modelled_j, other.modelled_j);
  sum.inside += other.inside;
  sum.expected += other.expected;
}

std::optional<double> machine_energy(const std::vector<Domain>& domains, const std::vector<DomainEnergy>& energies) {
  std::optional<double> sum;
  bool hidden = false;
  for (std::size_t i = 0; i < energies.size(); ++i) {
    if (!energies[i].energy_j || !energies[i].measured) continue;
    const bool unused_gpu = domains[i].scope == Scope::gpu && !domains[i].visible;
    hidden |= unused_gpu;
    if (energies[i].in_total || unused_gpu) sum = sum.value_or(0) + *energies[i].energy_j;
  }
  return hidden ? sum : std::nullopt;
}

bool is_part(const Domain& domain, const DomainEnergy& energy) {
  if (!energy.energy_j || !energy.measured || energy.scope == Scope::node) return false;
  return energy.in_total || (domain.scope == Scope::gpu && !domain.visible);
}

const DomainEnergy* node_meter(const std::vector<Domain>& domains, const std::vector<DomainEnergy>& energies) {
  for (std::size_t i = 0; i < energies.size(); ++i) {
    const auto& e = energies[i];
    if (e.scope == Scope::node && e.energy_j && e.measured && domains[i].claims_total)
      return e.coverage < 0.99 ? nullptr : &e;
  }
  return nullptr;
}

std::optional<Estimate> unexplained(const std::string& node, const std::vector<Domain>& domains,
                                    const std::vector<DomainEnergy>& energies, std::vector<Warning>& warnings) {
  const DomainEnergy* meter = node_meter(domains, energies);
  double parts = 0, variance = 0;
  bool any = false;
  for (std::size_t i = 0; i < energies.size(); ++i) {
    if (!is_part(domains[i], energies[i])) continue;
    any = true;
    parts += *energies[i].energy_j;
    variance += square(energies[i].uncertainty_j.value_or(0));
  }
  if (!meter || !any) return std::nullopt;
  const double rest = *meter->energy_j - parts;
  const double tolerance = std::sqrt(variance + square(meter->uncertainty_j.value_or(0)));
  if (rest >= 0) return Estimate{rest, tolerance};
  if (-rest > tolerance)
    warnings.push_back({"meters-disagree",
                        fmt::format("on {} the parts add up to {:.6g} J, above the {:.6g} J of the node meter {}", node,
                                    parts, *meter->energy_j, meter->device.empty() ? meter->domain : meter->device),
                        "one of them is wrong; both are shown and nothing is subtracted"});
  return std::nullopt;
}

}  // namespace ergometer
