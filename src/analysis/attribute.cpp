#include "analysis/attribute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ergometer {
namespace {

// Others count as seen on a node if they used more than this part of its busy CPU time, and of one core.
constexpr double kOthersShare = 0.1;
// Sums of percentages that are told as whole numbers may differ by rounding.
constexpr double kRounding = 1e-6;

Part both(const Part& a, const Part& b) { return {a.estimate, std::min(a.lower, b.lower), std::max(a.upper, b.upper)}; }

DeviceEnergy device_energy(const DomainEnergy& energy, const IdlePower& idle, double run_s) {
  DeviceEnergy out{*energy.energy_j, std::nullopt};
  if (idle.known) out.idle_j = idle.power_w * energy.coverage * run_s;
  return out;
}

// By what its processes did, in kernels and in memory.
void add_process_shares(const std::string& name, const DeviceEnergy& energy, const RunMeans& mean, Sharing sharing,
                        std::vector<Attribution>& out) {
  for (const auto& [method, infix] : {std::pair{"sm_share", ""}, {"memory_activity", "memory_"}}) {
    const auto all = mean(fmt::format("{}/process_{}active_ratio", name, infix));
    const auto own = mean(fmt::format("{}/tree_{}active_ratio", name, infix));
    const auto others = mean(fmt::format("{}/foreign_{}active_ratio", name, infix));
    const bool told = all && own && others;
    if (!told && infix[0] != '\0') continue;
    const double unattributed = told ? *all - *own - *others : 0;
    Attribution a = attribute_by_activity(
        energy, told ? part_of(*own, *others, unattributed > kRounding ? unattributed : 0) : Part{});
    a.domain = name;
    a.method = method;
    a.sharing = sharing;
    if (!told)
      a.note = "the driver does not tell what each process did";
    else if (!a.energy_j)
      a.note = "some processes could not be attributed";
    out.push_back(std::move(a));
  }
}

void add_slice_share(const GpuInfo& gpu, const std::string& name, const DeviceEnergy& energy, const RunMeans& mean,
                     std::vector<Attribution>& out) {
  std::map<int, SliceUse> instances;
  bool sizes_known = true;
  for (const auto& slice : gpu.slices) {
    auto& use = instances[slice.gpu_instance];
    sizes_known &= slice.multiprocessors.value_or(0) > 0;
    use.multiprocessors += slice.multiprocessors.value_or(0);
    if (slice.visible) use.own += slice.multiprocessors.value_or(0);
  }
  std::vector<SliceUse> slices;
  for (auto& [instance, use] : instances) {
    if (use.multiprocessors > 0) use.own /= use.multiprocessors;
    use.sm_active = mean(fmt::format("{}/mig{}_sm_active_ratio", name, instance));
    use.memory_active = mean(fmt::format("{}/mig{}_dram_active_ratio", name, instance));
    slices.push_back(use);
  }
  const bool own_known = std::ranges::any_of(slices, [](const SliceUse& s) { return s.own > 0; });
  Attribution a =
      attribute_slices(energy, sizes_known ? std::span<const SliceUse>(slices) : std::span<const SliceUse>());
  a.domain = name;
  a.method = "mig_slices";
  a.sharing = Sharing::shared;
  if (!sizes_known)
    a.note = "the driver does not tell the slices' sizes";
  else if (!own_known)
    a.note = "which slices are the command's is not known";
  else if (!a.energy_j)
    a.note = "the slices' activity or the idle power is not known";
  out.push_back(std::move(a));
}

// All packages together: which of them a process ran on is not recorded.
void add_cpu_share(std::span<const Domain> domains, std::span<const DomainEnergy> energies,
                   std::span<const IdlePower> idle, const RunMeans& mean, double run_s, std::vector<Attribution>& out) {
  DeviceEnergy sum{0, 0.0};
  std::string name;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const auto& e = energies[i];
    if (e.scope != Scope::package || !e.measured || !e.energy_j || !domains[i].claims_total) continue;
    const auto one = device_energy(e, idle[i], run_s);
    sum.total_j += one.total_j;
    sum.idle_j = sum.idle_j && one.idle_j ? std::optional(*sum.idle_j + *one.idle_j) : std::nullopt;
    name = name.empty() ? e.domain : "packages";
  }
  const auto tree = mean("tree/cpu_s"), all = mean("system/cpu_s");
  if (name.empty() || !tree || !all || *all <= 0) return;
  const double others = *all - *tree;
  Attribution a = attribute_by_activity(sum, part_of(*tree, others, 0));
  a.domain = name;
  a.method = "cpu_time";
  a.sharing = others > kOthersShare * *all && others > kOthersShare * run_s ? Sharing::shared : Sharing::alone;
  out.push_back(std::move(a));
}

}  // namespace

Part part_of(double own, double others, double unattributed) {
  own = std::max(own, 0.0);
  unattributed = std::max(unattributed, 0.0);
  const double all = own + std::max(others, 0.0) + unattributed;
  if (all <= 0) return {};
  Part out{std::nullopt, own / all, (own + unattributed) / all};
  if (unattributed == 0) out.estimate = out.lower;
  return out;
}

Attribution attribute(const DeviceEnergy& energy, const Part& idle, const Part& active) {
  const double total = std::max(energy.total_j, 0.0);
  const auto known = energy.idle_j ? std::optional(std::clamp(*energy.idle_j, 0.0, total)) : std::nullopt;
  const auto share = [&](double idle_j, double idle_part, double active_part) {
    return idle_j * idle_part + (total - idle_j) * active_part;
  };
  Attribution out;
  // Linear in the idle energy, so the extremes lie at its ends.
  const double least = known.value_or(0), most = known.value_or(total);
  out.lower_j = std::min(share(least, idle.lower, active.lower), share(most, idle.lower, active.lower));
  out.upper_j = std::max(share(least, idle.upper, active.upper), share(most, idle.upper, active.upper));
  if (idle.estimate && active.estimate && (known || *idle.estimate == *active.estimate))
    out.energy_j = share(known.value_or(0), *idle.estimate, *active.estimate);
  return out;
}

Attribution attribute_by_activity(const DeviceEnergy& energy, const Part& activity) {
  return attribute(energy, {activity.estimate, 0, 1}, activity);
}

Attribution attribute_slices(const DeviceEnergy& energy, std::span<const SliceUse> slices) {
  double all = 0, own = 0;
  for (const auto& s : slices) {
    all += s.multiprocessors;
    own += s.multiprocessors * s.own;
  }
  if (all <= 0 || own <= 0) return attribute(energy, {}, {});
  // Of an instance that the command has only a part of, its activity is between nothing and all.
  const auto active_by = [&](std::optional<double> SliceUse::*activity) {
    double mine = 0, shared = 0, others = 0, estimate = 0;
    for (const auto& s : slices) {
      if (!(s.*activity)) return Part{};
      const double work = s.multiprocessors * *(s.*activity);
      estimate += work * s.own;
      (s.own >= 1 ? mine : s.own > 0 ? shared : others) += work;
    }
    Part part = part_of(mine, others, shared);
    if (const double total = mine + shared + others; total > 0) part.estimate = estimate / total;
    return part;
  };
  const Part by_sm = active_by(&SliceUse::sm_active), by_memory = active_by(&SliceUse::memory_active);
  const Part idle{own / all, own / all, own / all};
  return attribute(energy, idle, by_memory.estimate ? both(by_sm, by_memory) : by_sm);
}

std::vector<Attribution> attribute_run(const Node& node, std::span<const Domain> domains,
                                       std::span<const DomainEnergy> energies, std::span<const IdlePower> idle,
                                       std::span<const Gauge> gauges, double run_s) {
  const RunMeans mean(gauges);
  std::vector<Attribution> out;
  for (const auto& gpu : node.gpus) {
    const auto name = fmt::format("gpu/{}", gpu.index);
    const auto domain =
        std::ranges::find_if(domains, [&](const Domain& d) { return d.scope == Scope::gpu && d.name == name; });
    if (domain == domains.end() || !gpu.visible) continue;
    const auto at = static_cast<std::size_t>(domain - domains.begin());
    const auto& e = energies[at];
    if (!e.energy_j || !e.measured) continue;
    const auto energy = device_energy(e, idle[at], run_s);
    if (gpu.mig) {
      add_slice_share(gpu, name, energy, mean, out);
    } else if (mean(name + "/foreign_process_count").value_or(0) > 0) {
      add_process_shares(name, energy, mean, Sharing::shared, out);
    } else if (mean(name + "/unattributed_process_count").value_or(0) > 0) {
      add_process_shares(name, energy, mean, Sharing::unknown, out);
    }
  }
  add_cpu_share(domains, energies, idle, mean, run_s, out);
  return out;
}

}  // namespace ergometer
