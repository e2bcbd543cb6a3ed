#include "cluster/job_account.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/combine.hpp"

namespace ergometer {
namespace {

using Key = std::pair<std::string, Scope>;  // of a device on its node

struct Sum {
  DomainEnergy energy;
  double measured_s = 0;
};

double length_s(const JobPart& part) { return seconds(part.end - part.begin); }

// Adds the next interval of the same device.
void add(Sum& sum, const DomainEnergy& next, double interval_s) {
  auto& all = sum.energy;
  if (!all.energy_j) {
    all = next;
    sum.measured_s = next.coverage * interval_s;
    return;
  }
  // Without its parts an uncertainty is taken as one that does not average out.
  const auto parts_of = [](const DomainEnergy& e) {
    auto parts = e.parts;
    if (half_width(parts) == 0) parts.gain_j = e.uncertainty_j.value_or(0);
    return parts;
  };
  const auto a = parts_of(all), b = parts_of(next);
  all.parts = {std::hypot(a.random_j, b.random_j), a.hidden_j + b.hidden_j, a.gain_j + b.gain_j,
               a.offset_j + b.offset_j};
  all.energy_j = *all.energy_j + *next.energy_j;
  all.uncertainty_j = all.uncertainty_j && next.uncertainty_j ? std::optional(half_width(all.parts)) : std::nullopt;
  if (next.max_power_w) all.max_power_w = std::max(all.max_power_w.value_or(*next.max_power_w), *next.max_power_w);
  all.in_total = all.in_total || next.in_total;
  all.measured = all.measured && next.measured;
  sum.measured_s += next.coverage * interval_s;
}

// Whether a reading of this scope contains the other devices of the node.
bool is_whole_node(Scope scope) { return scope == Scope::node || scope == Scope::psys || scope == Scope::system; }

// Each device's energy over the union of the parts' intervals; `parts` are of one node and one source.
std::map<Key, Sum> unite(std::vector<const JobPart*> parts, const CutPart& cut) {
  std::sort(parts.begin(), parts.end(), [](const JobPart* a, const JobPart* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end > b->end;
  });
  std::map<Key, Sum> sums;
  std::map<Key, WallTime> covered;  // up to where a device has been counted
  for (const auto* part : parts) {
    std::map<WallTime, std::vector<DomainEnergy>> cuts;  // by begin: devices mostly agree where the rest begins
    for (const auto& domain : part->domains) {
      if (!domain.energy_j) continue;
      const Key key{domain.domain, domain.scope};
      const auto [until, fresh] = covered.try_emplace(key, part->begin);
      if (!fresh && part->end <= until->second) continue;
      const WallTime from = fresh ? part->begin : std::max(part->begin, until->second);
      if (from == part->begin) {
        add(sums[key], domain, length_s(*part));
      } else {
        const auto [found, asked] = cuts.try_emplace(from);
        if (asked) found->second = cut(*part, from, part->end);
        for (const auto& rest : found->second)
          if (Key{rest.domain, rest.scope} == key && rest.energy_j) add(sums[key], rest, seconds(part->end - from));
      }
      until->second = part->end;
    }
  }
  return sums;
}

void choose_source(JobNode& node, const std::map<Key, Sum>& runs, const std::map<Key, Sum>& records) {
  auto all = runs;
  all.insert(records.begin(), records.end());
  for (const auto& [key, any] : all) {
    const auto run = runs.find(key), record = records.find(key);
    const bool both = run != runs.end() && record != records.end();
    const bool daemon = run == runs.end() || (both && record->second.measured_s > 1.01 * run->second.measured_s);
    const Sum& sum = daemon ? record->second : run->second;
    JobDomain out{sum.energy, daemon ? JobPart::Source::daemon : JobPart::Source::run, sum.measured_s, {}};
    if (both) out.other_j = (daemon ? run : record)->second.energy.energy_j;
    out.energy.mean_power_w = sum.measured_s > 0 ? std::optional(*sum.energy.energy_j / sum.measured_s) : std::nullopt;
    node.domains.push_back(std::move(out));
  }
  const bool parts_inside = std::any_of(node.domains.begin(), node.domains.end(), [](const JobDomain& d) {
    return d.energy.in_total && d.energy.measured && !is_whole_node(d.energy.scope);
  });
  if (!parts_inside) return;
  for (auto& domain : node.domains)
    if (is_whole_node(domain.energy.scope)) domain.energy.in_total = false;
}

bool counts(const JobDomain& d) { return d.energy.in_total && d.energy.measured && d.energy.energy_j; }

void total_node(JobNode& node, double job_s) {
  double variance = 0, mean_w = 0, max_w = 0;
  bool known_errors = true, known_means = true, known_peaks = true, any = false;
  for (auto& domain : node.domains) {
    domain.energy.coverage = job_s > 0 ? std::min(1.0, domain.measured_s / job_s) : 0;
    if (!counts(domain)) continue;
    node.energy_j = node.energy_j.value_or(0) + *domain.energy.energy_j;
    known_errors &= domain.energy.uncertainty_j.has_value();
    known_means &= domain.energy.mean_power_w.has_value();
    known_peaks &= domain.energy.max_power_w.has_value();
    variance += std::pow(domain.energy.uncertainty_j.value_or(0), 2);
    mean_w += domain.energy.mean_power_w.value_or(0);
    max_w += domain.energy.max_power_w.value_or(0);
    node.measured_s = std::max(node.measured_s, domain.measured_s);
    node.coverage = any ? std::min(node.coverage, domain.energy.coverage) : domain.energy.coverage;
    any = true;
  }
  if (!any) return;
  if (known_errors) node.uncertainty_j = std::sqrt(variance);
  if (known_means) node.mean_power_w = mean_w;
  if (known_peaks) node.max_power_w = max_w;
}

void find_idle_gpus(JobNode& node, const std::vector<const JobPart*>& runs) {
  for (const auto& domain : node.domains) {
    const auto& name = domain.energy.domain;
    bool seen = false, idle = true;
    for (const auto* part : runs) {
      const bool has = std::any_of(part->domains.begin(), part->domains.end(),
                                   [&](const auto& d) { return d.domain == name && d.energy_j; });
      seen |= has;
      idle &= !has || part->idle_gpus.contains(name);
    }
    if (!seen || !idle) continue;
    node.idle_gpus.push_back(name);
    node.idle_gpu_j = node.idle_gpu_j.value_or(0) + *domain.energy.energy_j;
  }
}

std::map<std::string, std::vector<const JobPart*>> by_node(const std::vector<JobPart>& parts,
                                                           const std::function<bool(const JobPart&)>& wanted) {
  std::map<std::string, std::vector<const JobPart*>> out;
  for (const auto& part : parts)
    if (wanted(part)) out[part.node].push_back(&part);
  return out;
}

// Adds a node to a sum: independent of the others.
template <class Of>
void add_node(Of& sum, const JobNode& node, double& variance, bool& known) {
  if (!node.energy_j) return;
  sum.energy_j = sum.energy_j.value_or(0) + *node.energy_j;
  known &= node.uncertainty_j.has_value();
  variance += std::pow(node.uncertainty_j.value_or(0), 2);
  if (node.mean_power_w) sum.mean_power_w = sum.mean_power_w.value_or(0) + *node.mean_power_w;
}

JobStepEnergy account_step(const std::string& step, const std::vector<JobPart>& parts, const CutPart& cut) {
  JobStepEnergy out;
  out.step = step;
  std::optional<WallTime> begin, end;
  double variance = 0;
  bool known = true;
  for (const auto& [name, of_node] :
       by_node(parts, [&](const JobPart& p) { return p.source == JobPart::Source::run && p.step == step; })) {
    JobNode node;
    choose_source(node, unite(of_node, cut), {});
    total_node(node, 0);
    add_node(out, node, variance, known);
    out.nodes.push_back(name);
    for (const auto* part : of_node) {
      begin = std::min(begin.value_or(part->begin), part->begin);
      end = std::max(end.value_or(part->end), part->end);
      out.complete &= part->complete;
    }
  }
  if (out.energy_j && known) out.uncertainty_j = std::sqrt(variance);
  if (begin && end) out.duration_s = seconds(*end - *begin);
  return out;
}

void account_steps(JobAccount& account, const std::vector<JobPart>& parts, const CutPart& cut) {
  std::vector<std::pair<WallTime, std::string>> steps;
  for (const auto& part : parts) {
    if (part.source != JobPart::Source::run) continue;
    const auto known = std::find_if(steps.begin(), steps.end(), [&](const auto& s) { return s.second == part.step; });
    if (known == steps.end())
      steps.emplace_back(part.begin, part.step);
    else
      known->first = std::min(known->first, part.begin);
  }
  std::sort(steps.begin(), steps.end());
  for (const auto& [begin, step] : steps) account.steps.push_back(account_step(step, parts, cut));
}

}  // namespace

JobAccount account_job(const std::vector<JobPart>& parts, const std::vector<std::string>& expected_nodes, double job_s,
                       const CutPart& cut) {
  JobAccount account;
  const auto runs = by_node(parts, [](const JobPart& p) { return p.source == JobPart::Source::run; });
  const auto records = by_node(parts, [](const JobPart& p) { return p.source == JobPart::Source::daemon; });
  const auto all = by_node(parts, [](const JobPart&) { return true; });
  double variance = 0;
  bool known = true, peaks = true;
  account.coverage = all.empty() ? 0 : 1;
  for (const auto& [name, of_node] : all) {
    JobNode node;
    node.name = name;
    const auto run = runs.find(name);
    const auto record = records.find(name);
    choose_source(node, run == runs.end() ? std::map<Key, Sum>{} : unite(run->second, cut),
                  record == records.end() ? std::map<Key, Sum>{} : unite(record->second, cut));
    total_node(node, job_s);
    if (run != runs.end()) find_idle_gpus(node, run->second);
    add_node(account, node, variance, known);
    peaks &= !node.energy_j || node.max_power_w;
    account.max_power_w = account.max_power_w.value_or(0) + node.max_power_w.value_or(0);
    account.coverage = std::min(account.coverage, node.coverage);
    account.nodes.push_back(std::move(node));
  }
  if (!account.energy_j || !peaks) account.max_power_w.reset();
  if (account.energy_j && known) account.uncertainty_j = std::sqrt(variance);
  for (const auto& name : expected_nodes) {
    const auto node =
        std::find_if(account.nodes.begin(), account.nodes.end(), [&](const JobNode& n) { return n.name == name; });
    if (node == account.nodes.end() || !node->energy_j) account.missing.push_back(name);
  }
  if (!account.missing.empty()) account.coverage = 0;
  account_steps(account, parts, cut);
  return account;
}

}  // namespace ergometer
