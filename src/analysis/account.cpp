#include "analysis/account.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/baseline.hpp"
#include "analysis/totals.hpp"

namespace ergometer {
namespace {

constexpr double kIdleActivity = 0.01;  // a GPU that was active for less of the run did nothing

const GpuInfo* gpu_of(const Node& node, const Domain& domain) {
  if (domain.scope != Scope::gpu) return nullptr;
  for (const auto& gpu : node.gpus)
    if (fmt::format("gpu/{}", gpu.index) == domain.name) return &gpu;
  return nullptr;
}

// By its activity; where no driver tells that, by the lack of processes on it.
bool did_nothing(const Domain& domain, const RunMeans& mean) {
  if (domain.scope != Scope::gpu) return false;
  for (const char* activity : {"gpu_active_ratio", "sampled_gpu_active_ratio", "sm_active_ratio"})
    if (const auto active = mean(domain.name + "/" + activity)) return *active < kIdleActivity;
  const auto processes = mean(domain.name + "/process_count");
  return processes && *processes < kIdleActivity;
}

std::optional<double> tdp_of(const Domain& domain, const GpuInfo* gpu) {
  if (gpu) return gpu->default_power_limit_w ? gpu->default_power_limit_w : gpu->max_power_limit_w;
  if (domain.scope != Scope::package) return std::nullopt;
  for (const auto& c : domain.candidates)
    if (c.channel.measured && c.channel.max_power_w) return c.channel.max_power_w;
  return std::nullopt;
}

// The mean of the readings that a monitor shows; where there is only a counter, its energy over its time.
std::optional<double> mean_power_of(const Domain& domain, const DomainEnergy& energy) {
  for (const Method method : {Method::average, Method::integral, Method::samples})
    for (const auto& c : domain.candidates)
      if (c.channel.measured && c.channel.method == method && c.plain_mean_w) return c.plain_mean_w;
  return energy.mean_power_w;
}

// The sensor that gave the energy.
std::string sensor_of(const Domain& domain, const DomainEnergy& energy) {
  for (const auto& c : domain.candidates)
    if (c.channel.method == energy.method && c.channel.measured == energy.measured)
      return c.interface.empty() || c.interface == c.sensor ? c.sensor : fmt::format("{} ({})", c.sensor, c.interface);
  return {};
}

NodePart part_of_domain(const Domain& domain, const DomainEnergy& energy, const IdlePower& idle, const GpuInfo* gpu,
                        double run_s) {
  NodePart out;
  out.domain = domain.scope == Scope::memory ? domain.name + " memory" : domain.name;
  out.role = energy.scope == Scope::node ? PartRole::meter : PartRole::inside;
  out.sensor = sensor_of(domain, energy);
  out.energy_j = energy.energy_j;
  out.uncertainty_j = energy.uncertainty_j;
  if (idle.known) {
    DomainEnergy one = energy;
    one.in_total = true;  // also of a domain that stands beside the total
    const auto net = net_energy({one}, {idle}, run_s);
    out.idle_j = idle.power_w * run_s;
    out.net_j = net->value;
    out.net_uncertainty_j = net->uncertainty;
  }
  out.tdp_w = tdp_of(domain, gpu);
  out.mean_power_w = mean_power_of(domain, energy);
  if (out.tdp_w) out.shortcuts.tdp_j = *out.tdp_w * run_s;
  if (out.mean_power_w) out.shortcuts.mean_power_j = *out.mean_power_w * run_s;
  return out;
}

bool has_energy_of(const std::vector<DomainEnergy>& energies, Scope scope) {
  return std::ranges::any_of(energies,
                             [&](const DomainEnergy& e) { return e.scope == scope && e.energy_j && e.measured; });
}

std::string counted(std::size_t n, const char* one, const char* many) {
  return n == 1 ? fmt::format("1 {}", one) : fmt::format("{} {}", n, many);
}

// What has no reading of its own. A module holds its processor and memory; packages of some processors hold no memory.
std::vector<std::string> unmeasured_of(const Node& node, const std::vector<DomainEnergy>& energies) {
  std::vector<std::string> out;
  const bool module = has_energy_of(energies, Scope::module);
  if (!module && !has_energy_of(energies, Scope::package)) out.emplace_back("processors");
  if (!module && !has_energy_of(energies, Scope::dram)) out.emplace_back("dram");
  for (const auto& e : energies)
    if (e.scope == Scope::gpu && !e.energy_j && !module) out.push_back(e.domain);
  struct Kind {
    const char *kind, *one, *many;
  };
  for (const auto& [kind, one, many] : std::array<Kind, 4>{{{"fan", "fan", "fans"},
                                                            {"nic", "network interface", "network interfaces"},
                                                            {"disk", "disk", "disks"},
                                                            {"supply", "power supply", "power supplies"}}}) {
    const auto n = std::ranges::count(node.components, std::string_view(kind), &Component::kind);
    if (n > 0) out.push_back(counted(static_cast<std::size_t>(n), one, many));
  }
  // Every machine has these, whatever the kernel tells.
  out.emplace_back("mainboard and losses of the power supply");
  return out;
}

}  // namespace

NodeAccount account_of(const Node& node, const std::vector<Domain>& domains, const std::vector<DomainEnergy>& energies,
                       const std::vector<IdlePower>& idle, std::span<const Gauge> gauges,
                       const std::optional<Estimate>& rest, double run_s) {
  const RunMeans mean(gauges);
  NodeAccount out;
  double sum = 0, variance = 0, idle_j = 0, idle_variance = 0;
  bool any = false;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const auto& e = energies[i];
    if (!e.energy_j || !e.measured) continue;
    auto part = part_of_domain(domains[i], e, idle[i], gpu_of(node, domains[i]), run_s);
    if (domains[i].scope == Scope::gpu) part.note = context_of(node, e.domain, mean(e.domain + "/process_count"));
    if (is_part(domains[i], e)) {
      part.role = did_nothing(domains[i], mean) ? PartRole::idle_gpu : PartRole::part;
      any = true;
      sum += *e.energy_j;
      variance += square(e.uncertainty_j.value_or(0));
      if (part.role == PartRole::idle_gpu) {
        ++out.idle_gpus;
        idle_j += *e.energy_j;
        idle_variance += square(e.uncertainty_j.value_or(0));
      }
    }
    out.parts.push_back(std::move(part));
  }
  if (const auto* meter = node_meter(domains, energies)) {
    out.energy_j = meter->energy_j;
    out.uncertainty_j = meter->uncertainty_j;
    out.metered = true;
  } else if (any) {
    out.energy_j = sum;
    out.uncertainty_j = std::sqrt(variance);
  }
  if (rest) {
    out.rest_j = rest->value;
    out.rest_uncertainty_j = rest->uncertainty;
  }
  out.unmeasured = unmeasured_of(node, energies);
  const bool known = out.energy_j && *out.energy_j > 0;
  for (auto& part : out.parts)
    if (known && (part.role == PartRole::part || part.role == PartRole::idle_gpu))
      part.share = *part.energy_j / *out.energy_j;
  if (out.idle_gpus > 0) {
    out.idle_gpu_j = idle_j;
    out.idle_gpu_uncertainty_j = std::sqrt(idle_variance);
    if (known) out.idle_gpu_share = idle_j / *out.energy_j;
  }
  return out;
}

void ShortcutRates::add(const ShortcutRates& other) {
  const auto add = [](std::optional<double>& a, const std::optional<double>& b) {
    a = a && b ? std::optional(*a + *b) : std::nullopt;
  };
  add(tdp_w, other.tdp_w);
  add(mean_power_w, other.mean_power_w);
}

Shortcuts ShortcutRates::over(double duration_s) const {
  Shortcuts out;
  if (tdp_w) out.tdp_j = *tdp_w * duration_s;
  if (mean_power_w) out.mean_power_j = *mean_power_w * duration_s;
  return out;
}

ShortcutRates shortcut_rates(const NodeAccount& account, const std::vector<DomainEnergy>& energies) {
  ShortcutRates out{0.0, 0.0};
  bool any = false;
  for (const auto& e : energies) {
    if (!e.in_total || !e.energy_j || !e.measured) continue;
    const auto part = std::ranges::find_if(account.parts, [&](const NodePart& p) { return p.domain == e.domain; });
    if (part == account.parts.end()) continue;
    // Nobody states a power of memory; the shortcut leaves it out.
    out.add({e.scope == Scope::dram ? std::optional(0.0) : part->tdp_w, part->mean_power_w});
    any = true;
  }
  return any ? out : ShortcutRates{};
}

}  // namespace ergometer
