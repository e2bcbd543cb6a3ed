#include "comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/decision.hpp"
#include "model/region.hpp"

namespace ergometer::cli {
namespace {

std::optional<double> samples_of(const Summary& summary) {
  double sum = 0;
  bool any = false;
  for (const auto& r : summary.regions) {
    const auto it = r.metrics.find("samples");
    if (it == r.metrics.end()) continue;
    sum += it->second;
    any = true;
  }
  return any && sum > 0 ? std::optional(sum) : std::nullopt;
}

// Energy of the regions that count samples, over these samples: set-up and tear-down are not part of it.
std::optional<double> energy_per_sample(const Summary& summary) {
  const auto samples = samples_of(summary);
  double energy = 0;
  for (const auto& r : summary.regions) {
    if (!r.metrics.contains("samples")) continue;
    if (!r.energy_j) return std::nullopt;
    energy += *r.energy_j;
  }
  return samples ? std::optional(energy / *samples) : std::nullopt;
}

ComparedRun compared(const std::string& path, const LoadedRun& run) {
  ComparedRun out;
  out.path = path;
  out.name = run.manifest.name.empty() ? path : run.manifest.name;
  out.duration_s = run.summary.run.duration_s;
  out.energy_j = run.summary.run.energy_j;
  out.uncertainty_j = run.summary.run.uncertainty_j;
  if (out.energy_j && out.duration_s && *out.duration_s > 0) out.mean_power_w = *out.energy_j / *out.duration_s;
  out.energy_per_sample_j = energy_per_sample(run.summary);
  for (const auto& node : run.summary.nodes)
    for (const auto& domain : node.domains)
      if (domain.in_total && domain.measured && domain.energy_j)
        out.domains_j[run.summary.nodes.size() > 1 ? node.name + ": " + domain.domain : domain.domain] += *domain.energy_j;
  out.partial = run.summary.run.partial;
  out.valid = run.summary.run.valid;
  return out;
}

std::optional<Centre> centre_of(const std::optional<double>& value, const std::optional<double>& half_width) {
  if (!value || !(*value > 0)) return std::nullopt;
  Centre out{*value, std::nullopt, 1};
  if (half_width) out.interval = Bounds{*value - *half_width, *value + *half_width};
  return out;
}

// The single, whole regions by path.
std::map<std::string, const RegionEnergy*> by_path(const Summary& summary) {
  std::map<std::string, const RegionEnergy*> out;
  std::set<std::string> twice;
  for (const auto& r : summary.regions) {
    if (r.count != 1 || r.cut) continue;
    if (!out.emplace(r.path, &r).second) twice.insert(r.path);
  }
  for (const auto& path : twice) out.erase(path);  // no telling which belongs to which
  return out;
}

using PairsByFamily = std::map<std::string, std::vector<Pair>>;

// Values of the regions that both runs have, by family ("train/epoch").
template <class Value>
PairsByFamily pairs_of(const Summary& a, const Summary& b, Value value) {
  PairsByFamily out;
  const auto other = by_path(b);
  for (const auto& [path, region] : by_path(a)) {
    const auto it = other.find(path);
    if (it == other.end()) continue;
    const auto x = value(*region), y = value(*it->second);
    if (!x || !y || !(*x > 0) || !(*y > 0)) continue;
    Region named;
    named.path = path;
    out[named.family()].push_back({*x, *y});
  }
  return out;
}

// The family that says most of the runs: epochs before others, then the one with the most pairs.
const PairsByFamily::value_type* best_family(const PairsByFamily& families) {
  const PairsByFamily::value_type* best = nullptr;
  const auto is_epoch = [](const auto& f) { return f.first == "epoch" || f.first.ends_with("/epoch"); };
  for (const auto& family : families) {
    if (family.second.size() < 2) continue;
    if (!best || (is_epoch(family) && !is_epoch(*best)) ||
        (is_epoch(family) == is_epoch(*best) && family.second.size() > best->second.size()))
      best = &family;
  }
  return best;
}

std::string percent(double share) { return fmt::format("{:.1f} %", std::abs(share) * 100); }

std::string whole_run_verdict(const ComparedQuantity& q, const std::string& run, const std::string& first, bool time) {
  if (!q.interval && std::abs(q.difference) < 0.0005)
    return fmt::format("{} and {} differ by less than 0.1 % in {}", run, first, q.quantity);
  if (!q.interval && !time)
    return fmt::format("{} uses {} {} {} than {}; nothing is known of the uncertainty", run, percent(q.difference),
                       q.difference < 0 ? "less" : "more", q.quantity, first);
  if (!q.interval)
    return fmt::format("{} takes {} {} {} than {}", run, percent(q.difference), q.difference < 0 ? "less" : "more",
                       q.quantity, first);
  const double low = q.interval->low, high = q.interval->high;
  if (low <= 0 && high >= 0)
    return fmt::format("no difference larger than {} can be seen between {} and {} in {}",
                       percent(std::max(std::abs(low), std::abs(high))), run, first, q.quantity);
  return fmt::format("{} uses {} {} {} than {}, interval {:.1f} to {}", run, percent(q.difference),
                     q.difference < 0 ? "less" : "more", q.quantity, first,
                     std::min(std::abs(low), std::abs(high)) * 100, percent(std::max(std::abs(low), std::abs(high))));
}

template <class Value>
void add_quantity(RunComparison& out, std::size_t run, const std::string& quantity, const std::optional<Centre>& value,
                  const std::optional<Centre>& reference, const Summary& a, const Summary& b, Value of_region, bool time) {
  if (!value || !reference) return;
  ComparedQuantity q;
  q.quantity = quantity;
  q.run = run;
  const Change change = change_of(*value, *reference);
  q.difference = change.share;
  q.interval = change.interval;
  const std::string &name = out.runs[run].name, &first = out.runs[0].name;
  q.verdict = whole_run_verdict(q, name, first, time);
  const auto families = pairs_of(a, b, of_region);
  if (const auto* family = best_family(families)) {
    q.regions = compare_paired(family->second);
    q.family = family->first;
    if (q.regions)
      q.verdict += fmt::format("; by {}: {}", q.family,
                               verdict_text(*q.regions, {name, first, quantity, time ? "takes" : "uses"}));
  }
  out.quantities.push_back(std::move(q));
}

std::set<std::string> devices_of(const LoadedRun& run) {
  std::set<std::string> out;
  for (const auto& node : run.nodes)
    for (const auto& gpu : node.gpus)
      if (gpu.visible) out.insert(gpu.name.empty() ? "GPU" : gpu.name);
  for (const auto& node : run.nodes)
    if (!node.cpu.model.empty()) out.insert(node.cpu.model);
  return out;
}

// Which domains a total is made of: totals of different domains are no like quantities.
std::set<std::string> total_of(const LoadedRun& run) {
  std::set<std::string> out;
  for (const auto& node : run.summary.nodes)
    for (const auto& d : node.domains)
      if (d.in_total && d.measured && d.energy_j) out.insert(d.domain);
  return out;
}

std::string list_of(const std::set<std::string>& set) {
  return set.empty() ? "nothing" : fmt::format("{}", fmt::join(set, ", "));
}

void add_caveats(RunComparison& out, const std::vector<LoadedRun>& runs) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& run = out.runs[i];
    if (!run.valid) out.caveats.push_back(run.name + " was cut or could not be measured");
    if (run.partial) out.caveats.push_back(run.name + " is partial: a device that should be in its total is not, or not throughout");
    if (!run.energy_j) out.caveats.push_back(run.name + " has no measured energy");
    if (runs[i].summary.run.exit_code.value_or(0) != 0)
      out.caveats.push_back(fmt::format("{} ended with exit code {}", run.name, *runs[i].summary.run.exit_code));
    if (i == 0) continue;
    if (total_of(runs[i]) != total_of(runs[0]))
      out.caveats.push_back(fmt::format("the totals are not alike: {} measured {}, {} measured {}", out.runs[0].name,
                                        list_of(total_of(runs[0])), run.name, list_of(total_of(runs[i]))));
    if (devices_of(runs[i]) != devices_of(runs[0]))
      out.caveats.push_back(fmt::format("the machines are not alike: {} has {}, {} has {}", out.runs[0].name,
                                        list_of(devices_of(runs[0])), run.name, list_of(devices_of(runs[i]))));
  }
}

// Runs of one name are told apart by their folder.
void make_names_unlike(std::vector<ComparedRun>& runs) {
  std::map<std::string, int> counts;
  for (const auto& run : runs) ++counts[run.name];
  for (auto& run : runs)
    if (counts[run.name] > 1) run.name = run.path;
}

}  // namespace

RunComparison compare_runs(const std::vector<std::string>& paths, const std::vector<LoadedRun>& runs) {
  RunComparison out;
  for (std::size_t i = 0; i < runs.size(); ++i) out.runs.push_back(compared(paths[i], runs[i]));
  make_names_unlike(out.runs);
  const ComparedRun first = out.runs[0];
  const auto region_energy = [](const RegionEnergy& r) { return r.energy_j; };
  const auto region_time = [](const RegionEnergy& r) { return std::optional(r.duration_s); };
  const auto region_sample = [](const RegionEnergy& r) -> std::optional<double> {
    const auto it = r.metrics.find("samples");
    if (!r.energy_j || it == r.metrics.end() || !(it->second > 0)) return std::nullopt;
    return *r.energy_j / it->second;
  };
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const Summary &a = runs[i].summary, &b = runs[0].summary;
    const ComparedRun run = out.runs[i];
    add_quantity(out, i, "energy", centre_of(run.energy_j, run.uncertainty_j), centre_of(first.energy_j, first.uncertainty_j),
                 a, b, region_energy, false);
    add_quantity(out, i, "time", centre_of(run.duration_s, std::nullopt), centre_of(first.duration_s, std::nullopt), a, b,
                 region_time, true);
    add_quantity(out, i, "energy per sample", centre_of(run.energy_per_sample_j, std::nullopt),
                 centre_of(first.energy_per_sample_j, std::nullopt), a, b, region_sample, false);
  }
  add_caveats(out, runs);
  return out;
}

}  // namespace ergometer::cli
