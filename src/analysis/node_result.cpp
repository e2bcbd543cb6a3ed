#include "analysis/node_result.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <tuple>

#include "analysis/attribute.hpp"
#include "analysis/baseline.hpp"
#include "analysis/combine.hpp"
#include "analysis/findings.hpp"
#include "analysis/region_metrics.hpp"

namespace ergometer {
namespace {

std::vector<Domain> group_domains(std::vector<Candidate> candidates, const Rows& rows) {
  std::map<std::pair<std::string, Scope>, Domain> by_key;
  for (auto& c : candidates) {
    auto& domain = by_key[{c.channel.domain, c.channel.scope}];
    domain.name = c.channel.domain;
    domain.scope = c.channel.scope;
    domain.candidates.push_back(std::move(c));
  }
  std::vector<Domain> domains;
  for (auto& [key, domain] : by_key) {
    judge(domain, rows);
    domains.push_back(std::move(domain));
  }
  return domains;
}

std::optional<double> idle_sum(const std::vector<DomainEnergy>& run, const std::vector<IdlePower>& idle) {
  std::optional<double> sum;
  for (std::size_t i = 0; i < run.size(); ++i) {
    if (!run[i].in_total || (run[i].energy_j && !run[i].measured)) continue;
    if (!idle[i].known) return std::nullopt;
    sum = sum.value_or(0) + idle[i].power_w;
  }
  return sum;
}

// A node whose readings are being turned into lines.
struct Settling {
  const NodeInput& input;
  std::vector<Domain> domains;
  std::vector<IdlePower> idle;  // one a domain
  NodeResult result;

  void run_line(double run_s);
  Total energies(RegionEnergy& out, std::uint32_t row, double duration_s) const;
  void region_lines(MonoTime run_begin);
  void shared_lines();
};

void Settling::run_line(double run_s) {
  NodeSummary& out = result.summary;
  out.name = input.node.name;
  std::set<int> ranks;
  for (const auto& rank : input.part.ranks)
    if (rank.rank >= 0) ranks.insert(rank.rank);
  // Who did not wait for its ranks' ends may know them by their marks.
  for (const auto& region : input.rows.regions)
    if (region.rank >= 0) ranks.insert(region.rank);
  out.ranks.assign(ranks.begin(), ranks.end());
  for (const auto& domain : domains) {
    out.domains.push_back(energy_of(domain, kRunRow, run_s));
    find_domain_findings(domain, out.domains.back(), result.warnings);
  }
  auto baselines = measure_baselines(input.node, domains, input.rows, input.gauges);
  idle = std::move(baselines.idle);
  out.baselines = std::move(baselines.told);
  find_drift(out.baselines, result.warnings);
  out.idle_power_w = idle_sum(out.domains, idle);
  if (out.idle_power_w) result.idle_j = *out.idle_power_w * run_s;
  if (const auto net = net_energy(out.domains, idle, run_s)) result.net_variance = net->uncertainty * net->uncertainty;
  out.machine_energy_j = machine_energy(domains, out.domains);
  const auto rest = unexplained(out.name, domains, out.domains, result.warnings);
  if (rest) out.unexplained_j = rest->value;
  find_event_findings(out.name, input.events, result.warnings);
  find_absences(input.node, domains, input.part, result.warnings);
  out.attributions = attribute_run(input.node, domains, out.domains, idle, input.gauges, run_s);
  out.account = account_of(input.node, domains, out.domains, idle, input.gauges, rest, run_s);
  result.rates = shortcut_rates(*out.account, out.domains);
  result.total = total_of(domains, out.domains);
  out.energy_j = result.total.energy_j;
  out.uncertainty_j = result.total.uncertainty_j;
  out.coverage = result.total.coverage;
}

Total Settling::energies(RegionEnergy& out, std::uint32_t row, double duration_s) const {
  for (const auto& domain : domains) {
    bool* low = domain.counted ? &out.low_confidence : nullptr;
    // Pooled regions are judged by their usual length.
    const double share = 1.0 / static_cast<double>(out.count);
    out.domains.push_back(energy_of(domain, row, duration_s, share, low));
  }
  Total total = total_of(domains, out.domains);
  out.energy_j = total.energy_j;
  out.uncertainty_j = total.uncertainty_j;
  out.modelled_j = total.modelled_j;
  out.coverage = total.coverage;
  const auto& idle_power_w = result.summary.idle_power_w;
  if (out.energy_j && idle_power_w) {
    out.net_energy_j = *out.energy_j - *idle_power_w * duration_s;
    if (const auto net = net_energy(out.domains, idle, duration_s)) out.net_uncertainty_j = net->uncertainty;
  }
  if (out.energy_j) out.shortcuts = result.rates.over(duration_s);
  return total;
}

void Settling::region_lines(MonoTime run_begin) {
  for (std::uint32_t line = 0; line < input.rows.lines.size(); ++line) {
    RegionEnergy out = describe(input.rows, line, run_begin);
    (void)energies(out, kFirstRegionRow + line, out.duration_s);
    add_metrics(input.rows, line, input.gauges, out);
    result.regions.push_back(std::move(out));
  }
  for (const auto& domain : domains)
    for (const auto& c : domain.candidates) result.locked.insert(result.locked.end(), c.locked.begin(), c.locked.end());
  result.pooled = pool_short(input.rows, result.regions, result.locked);
}

void Settling::shared_lines() {
  for (std::size_t line = 0; line < input.rows.shared; ++line) {
    RegionEnergy out;
    const std::uint32_t row = input.rows.shared_row(line);
    out.duration_s = input.rows.shared_s[line];
    Total total;
    if (out.duration_s > 0) {
      total = energies(out, row, out.duration_s);
      for (const auto& gauge : input.gauges)
        if (const auto& value = gauge.values[row]; value && std::isfinite(*value)) out.metrics[gauge.key] = *value;
    }
    result.shared.push_back(std::move(out));
    result.shared_totals.push_back(total);
  }
}

// Of several nodes these are averaged, everything else is added up. The part of one core that a process takes is an
// amount: two nodes take that of two.
bool is_level(const std::string& key) {
  if (key == "tree/cpu_ratio") return false;
  for (const char* unit : {"_ratio", "_hz", "_c", "_w"})
    if (key.ends_with(unit)) return true;
  return false;
}

void add_value(std::optional<double>& sum, const std::optional<double>& value) {
  if (value) sum = sum.value_or(0) + *value;
}

// Domains of one name on two nodes: two devices, of which nothing is alike but the clock that bounds their time.
void add_domain(DomainEnergy& sum, const DomainEnergy& one) {
  const bool both = sum.energy_j && one.energy_j;
  sum.coverage = both ? std::min(sum.coverage, one.coverage) : sum.energy_j ? sum.coverage : one.coverage;
  if (!sum.energy_j) sum.method = one.method;
  add_value(sum.energy_j, one.energy_j);
  auto& a = sum.parts;
  const auto& b = one.parts;
  a = {std::hypot(a.random_j, b.random_j), std::hypot(a.hidden_j, b.hidden_j), std::hypot(a.gain_j, b.gain_j),
       std::hypot(a.offset_j, b.offset_j), a.clock_j + b.clock_j};
  if (sum.energy_j) sum.uncertainty_j = half_width(a);
  add_value(sum.mean_power_w, one.mean_power_w);
  sum.max_power_w.reset();  // not reached at one moment
  add_value(sum.filled_j, one.filled_j);
  add_value(sum.gap_j, one.gap_j);
  sum.alternatives.clear();
  sum.measured &= one.measured || !one.energy_j;
  sum.in_total |= one.in_total;
  if (sum.device != one.device) sum.device.clear();
  if (sum.note != one.note) sum.note.clear();
}

}  // namespace

NodeResult settle_node(NodeInput input, const std::optional<Interval>& whole, MonoTime run_begin) {
  // Of two sensors with the same metric the last in the order of names is shown, whatever order the traces came in.
  std::sort(input.gauges.begin(), input.gauges.end(),
            [](const Gauge& a, const Gauge& b) { return std::tie(a.key, a.sensor) < std::tie(b.key, b.sensor); });
  Settling node{input, group_domains(std::move(input.candidates), input.rows), {}, {}};
  decide_totals(input.node, node.domains);
  node.run_line(whole ? seconds(whole->duration()) : 0);
  if (whole) {
    node.result.summary.begin_s = seconds(whole->begin - run_begin);
    node.result.summary.duration_s = seconds(whole->duration());
  }
  node.region_lines(run_begin);
  node.shared_lines();
  return std::move(node.result);
}

SharedSum::SharedSum(const SharedLine& line, MonoTime run_begin) {
  out_.path = line.path;
  out_.name = line.name;
  out_.index = line.index;
  out_.count = line.count;
  out_.ranks = line.ranks;
  out_.cut = line.cut;
  out_.duration_s = line.duration_s();
  out_.t_begin_s = seconds(mono_ns(line.pieces.front().begin) - run_begin);
  out_.metrics = line.metrics;
}

void SharedSum::add(const RegionEnergy& part, const Total& total) {
  if (part.duration_s <= 0) return;  // the node was not part of the run then
  add_total(total_, total);
  out_.low_confidence |= part.low_confidence;
  net_known_ &= part.net_energy_j.has_value();
  add_value(out_.net_energy_j, part.net_energy_j);
  net_variance_ += square(part.net_uncertainty_j.value_or(0));
  for (auto shortcut : {&Shortcuts::tdp_j, &Shortcuts::mean_power_j}) {
    auto& sum = out_.shortcuts.*shortcut;
    const auto& one = part.shortcuts.*shortcut;
    if (counts_["shortcuts"] == 0)
      sum = one;
    else
      sum = sum && one ? std::optional(*sum + *one) : std::nullopt;
  }
  ++counts_["shortcuts"];
  for (const auto& d : part.domains) {
    const auto known = std::find_if(out_.domains.begin(), out_.domains.end(),
                                    [&](const DomainEnergy& e) { return e.domain == d.domain && e.scope == d.scope; });
    if (known == out_.domains.end())
      out_.domains.push_back(d);
    else
      add_domain(*known, d);
  }
  for (const auto& [key, value] : part.metrics) {
    out_.metrics[key] += value;
    if (is_level(key)) ++counts_[key];
  }
}

RegionEnergy SharedSum::take() {
  out_.energy_j = total_.energy_j;
  out_.uncertainty_j = total_.uncertainty_j;
  out_.modelled_j = total_.modelled_j;
  out_.coverage = total_.coverage;
  if (!net_known_) out_.net_energy_j.reset();
  if (out_.net_energy_j) out_.net_uncertainty_j = std::sqrt(net_variance_);
  for (const auto& [key, count] : counts_)
    if (const auto mean = out_.metrics.find(key); mean != out_.metrics.end())
      mean->second /= static_cast<double>(count);
  add_work_metrics(out_);
  return std::move(out_);
}

}  // namespace ergometer
