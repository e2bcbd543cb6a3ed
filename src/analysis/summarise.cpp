#include "analysis/summarise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

#include "analysis/account.hpp"
#include "analysis/attribute.hpp"
#include "analysis/baseline.hpp"
#include "analysis/combine.hpp"
#include "analysis/findings.hpp"
#include "analysis/region_metrics.hpp"
#include "analysis/totals.hpp"

namespace ergometer {
namespace {

constexpr std::size_t kMostLines = 10'000;

struct NodeState {
  Node node;
  Rows rows;
  std::vector<Event> events;
  std::vector<Candidate> candidates;
  std::vector<Gauge> gauges;
  std::vector<Domain> domains;
  // Sum over the node's domains in the total, if each of them had readings in an idle phase.
  std::optional<double> idle_power_w;
  std::vector<IdlePower> idle;  // one a domain
  ShortcutRates rates;
};

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

}  // namespace

struct Summariser::State {
  Manifest manifest;
  std::map<std::string, NodeState> nodes;
  std::mutex mutex;
  Summary summary;
  Total run_total;
  double net_variance = 0;  // of the run's net energy, square of the 95 % half-width

  [[nodiscard]] std::optional<Interval> run_interval() const;
  void settle_node(NodeState& node, double run_s);
  void add_node_regions(NodeState& node, MonoTime run_begin);
  void finish_run();
};

// The command's interval; where its begin or end is unknown, as far as readings and regions go.
std::optional<Interval> Summariser::State::run_interval() const {
  std::optional<std::int64_t> first, last;
  const auto widen = [&](std::int64_t begin, std::int64_t end) {
    first = std::min(first.value_or(begin), begin);
    last = std::max(last.value_or(end), end);
  };
  for (const auto& [name, node] : nodes) {
    for (const auto& c : node.candidates)
      if (c.readings > 0) widen(c.first_ns, c.last_ns);
    for (const auto& r : node.rows.regions) widen(to_ns(r.begin), to_ns(r.end));
  }
  if (manifest.begin) first = to_ns(*manifest.begin);
  if (manifest.end) last = to_ns(*manifest.end);
  if (!first || !last || *last < *first) return std::nullopt;
  return Interval{mono_ns(*first), mono_ns(*last)};
}

void Summariser::State::settle_node(NodeState& node, double run_s) {
  // Of two sensors with the same metric the last in the order of names is shown, whatever order the traces came in.
  std::sort(node.gauges.begin(), node.gauges.end(),
            [](const Gauge& a, const Gauge& b) { return std::tie(a.key, a.sensor) < std::tie(b.key, b.sensor); });
  node.domains = group_domains(std::move(node.candidates), node.rows);
  decide_totals(node.node, node.domains);
  NodeSummary out;
  out.name = node.node.name;
  for (const auto& domain : node.domains) {
    out.domains.push_back(energy_of(domain, kRunRow, run_s));
    find_domain_findings(domain, out.domains.back(), summary.warnings);
  }
  auto baselines = measure_baselines(node.node, node.domains, node.rows, node.gauges);
  node.idle = std::move(baselines.idle);
  out.baselines = std::move(baselines.told);
  find_drift(out.baselines, summary.warnings);
  node.idle_power_w = idle_sum(out.domains, node.idle);
  if (const auto net = net_energy(out.domains, node.idle, run_s)) net_variance += net->uncertainty * net->uncertainty;
  out.idle_power_w = node.idle_power_w;
  out.machine_energy_j = machine_energy(node.domains, out.domains);
  const auto rest = unexplained(out.name, node.domains, out.domains, summary.warnings);
  if (rest) out.unexplained_j = rest->value;
  find_event_findings(out.name, node.events, summary.warnings);
  find_absences(node.node, node.domains, manifest, summary.warnings);
  out.attributions = attribute_run(node.node, node.domains, out.domains, node.idle, node.gauges, run_s);
  out.account = account_of(node.node, node.domains, out.domains, node.idle, node.gauges, rest, run_s);
  node.rates = shortcut_rates(*out.account, out.domains);
  add_total(run_total, total_of(node.domains, out.domains));
  summary.nodes.push_back(std::move(out));
}

void Summariser::State::add_node_regions(NodeState& node, MonoTime run_begin) {
  std::vector<RegionEnergy> regions;
  for (std::uint32_t line = 0; line < node.rows.lines.size(); ++line) {
    const std::uint32_t row = kFirstRegionRow + line;
    RegionEnergy out = describe(node.rows, line, run_begin);
    for (const auto& domain : node.domains) {
      bool* low = domain.counted ? &out.low_confidence : nullptr;
      // Pooled regions are judged by their usual length.
      const double share = 1.0 / static_cast<double>(out.count);
      out.domains.push_back(energy_of(domain, row, out.duration_s, share, low));
    }
    const Total total = total_of(node.domains, out.domains);
    out.energy_j = total.energy_j;
    out.uncertainty_j = total.uncertainty_j;
    out.modelled_j = total.modelled_j;
    out.coverage = total.coverage;
    if (out.energy_j && node.idle_power_w) {
      out.net_energy_j = *out.energy_j - *node.idle_power_w * out.duration_s;
      if (const auto net = net_energy(out.domains, node.idle, out.duration_s)) out.net_uncertainty_j = net->uncertainty;
    }
    if (out.energy_j) out.shortcuts = node.rates.over(out.duration_s);
    add_metrics(node.rows, line, node.gauges, out);
    regions.push_back(std::move(out));
  }
  std::vector<std::string> locked;
  for (const auto& domain : node.domains)
    for (const auto& c : domain.candidates) locked.insert(locked.end(), c.locked.begin(), c.locked.end());
  for (auto& pooled : pool_short(node.rows, regions, locked)) summary.pooled.push_back(std::move(pooled));
  std::move(regions.begin(), regions.end(), std::back_inserter(summary.regions));
}

void Summariser::State::finish_run() {
  auto& run = summary.run;
  run.exit_code = manifest.exit_code;
  run.energy_j = run_total.energy_j;
  run.uncertainty_j = run_total.uncertainty_j;
  run.modelled_j = run_total.modelled_j;
  run.partial = run.energy_j && (run_total.inside < run_total.expected || run_total.coverage < kFullCoverage);
  run.valid = manifest.state == "complete" && run.energy_j.has_value();
  double idle_w = 0;
  bool idle_known = !nodes.empty();
  ShortcutRates rates{0.0, 0.0};
  for (const auto& [name, node] : nodes) {
    rates.add(node.rates);
    idle_known &= node.idle_power_w.has_value();
    idle_w += node.idle_power_w.value_or(0);
  }
  if (run.energy_j && run.duration_s && idle_known) {
    run.net_energy_j = *run.energy_j - idle_w * *run.duration_s;
    run.net_uncertainty_j = std::sqrt(net_variance);
  }
  if (run.energy_j && run.duration_s) run.shortcuts = rates.over(*run.duration_s);
  if (manifest.overhead) {
    summary.overhead_cpu_s = manifest.overhead->cpu_s;
    if (run.duration_s && *run.duration_s > 0) summary.overhead_cpu_share = manifest.overhead->cpu_s / *run.duration_s;
  }
  if (manifest.state != "complete")
    summary.warnings.push_back({"run-cut", "the measurement did not end in order (state: " + manifest.state + ")",
                                "what was recorded up to then is shown"});
  find_total_findings(summary, run_total.inside, run_total.expected, run_total.coverage, summary.warnings);
}

Summariser::Summariser(const Manifest& manifest) : state_(std::make_unique<State>()) { state_->manifest = manifest; }
Summariser::~Summariser() = default;

void Summariser::add_node(const Node& node, std::vector<Region> regions, const std::vector<Event>& events) {
  auto rows = make_rows(state_->manifest, std::move(regions), kMostLines);
  const std::lock_guard lock(state_->mutex);
  auto& added = state_->nodes[node.name];
  added.node = node;
  added.rows = std::move(rows);
  added.events = events;
}

void Summariser::add_trace(const std::string& node_name, const Trace& trace) {
  NodeState* node = nullptr;
  {
    const std::lock_guard lock(state_->mutex);
    const auto it = state_->nodes.find(node_name);
    if (it == state_->nodes.end()) return;
    node = &it->second;  // a map's elements stay where they are
  }
  std::vector<Candidate> candidates;
  std::vector<Gauge> gauges;
  const auto mirrors = find_mirrors(trace);
  for (std::size_t i = 0; i < trace.info.channels.size() && i < trace.columns.size(); ++i) {
    if (gives_energy(trace.info.channels[i])) {
      candidates.push_back(make_candidate(trace, i, node->rows));
      if (mirrors[i]) candidates.back().mirror_of = trace.info.channels[*mirrors[i]].domain;
    } else {
      add_gauges(trace, i, node->rows, gauges);
    }
  }
  const std::lock_guard lock(state_->mutex);
  std::move(candidates.begin(), candidates.end(), std::back_inserter(node->candidates));
  std::move(gauges.begin(), gauges.end(), std::back_inserter(node->gauges));
}

Summary Summariser::finish() {
  State& s = *state_;
  s.summary.warnings = s.manifest.warnings;
  const auto interval = s.run_interval();
  if (interval) s.summary.run.duration_s = seconds(interval->duration());
  for (auto& [name, node] : s.nodes) s.settle_node(node, s.summary.run.duration_s.value_or(0));
  for (auto& [name, node] : s.nodes) s.add_node_regions(node, interval ? interval->begin : mono_ns(0));
  s.finish_run();
  auto& w = s.summary.warnings;
  for (auto it = w.begin(); it != w.end();)  // the same thing said twice is said once
    it = std::find(w.begin(), it, *it) != it ? w.erase(it) : it + 1;
  return std::move(s.summary);
}

}  // namespace ergometer
