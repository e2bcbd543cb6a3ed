#include "analysis/summarise.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "analysis/combine.hpp"
#include "analysis/findings.hpp"
#include "analysis/node_result.hpp"

namespace ergometer {
namespace {

constexpr std::size_t kMostLines = 10'000;
// Values that a line over all nodes may cost: readings are asked for each line on each node.
constexpr std::size_t kMostShared = 2'000'000;
constexpr std::size_t kFewestShared = 100;
// Above so many nodes a rank's own regions are told without their devices.
constexpr std::size_t kDetailedNodes = 32;
constexpr std::size_t kMostAlike = 20;  // warnings of one code
constexpr std::size_t kMostNames = 8;   // of nodes in one warning

struct NodeState {
  NodeInput input;
  std::vector<Region> regions;  // until the rows are made
  ClockMap clock;
  bool own_time = false;         // the node's part says when it worked for the run; else the run's times hold
  std::optional<Interval> span;  // as the part says
  std::optional<NodeResult> result;
};

// The same thing said twice is said once. Many nodes say the same in different words; some of each kind are enough.
void condense(std::vector<Warning>& warnings) {
  std::set<std::tuple<std::string, std::string, std::string>> said;
  std::erase_if(warnings, [&](const Warning& w) { return !said.emplace(w.code, w.message, w.remedy).second; });
  std::map<std::string, std::size_t> counts;
  for (const auto& w : warnings) ++counts[w.code];
  std::map<std::string, std::size_t> seen;
  std::vector<Warning> out;
  for (auto& w : warnings) {
    const std::size_t n = ++seen[w.code], all = counts[w.code];
    if (all > kMostAlike && n == kMostAlike)
      out.push_back({w.code, fmt::format("{} more warnings of this kind", all - kMostAlike + 1), ""});
    else if (all <= kMostAlike || n < kMostAlike)
      out.push_back(std::move(w));
  }
  warnings = std::move(out);
}

// What several nodes said in the same words, with who said it.
class NodeWarnings {
 public:
  void add(const std::string& node, std::vector<Warning> warnings) {
    for (auto& w : warnings) {
      const auto [it, fresh] = nodes_.try_emplace({w.code, w.message});
      if (it->second.empty() || it->second.back() != node) it->second.push_back(node);
      if (fresh) order_.push_back(std::move(w));
    }
  }
  void take(std::vector<Warning>& out) {
    for (auto& w : order_) {
      const auto& nodes = nodes_.at({w.code, w.message});
      if (nodes.size() > 1 || w.message.find(nodes.front()) == std::string::npos) {
        const auto shown = static_cast<std::ptrdiff_t>(std::min(nodes.size(), kMostNames));
        w.message += fmt::format(" (node {}", fmt::join(nodes.begin(), nodes.begin() + shown, ", "));
        w.message += nodes.size() > kMostNames ? fmt::format(" and {} more)", nodes.size() - kMostNames) : ")";
      }
      out.push_back(std::move(w));
    }
  }

 private:
  std::vector<Warning> order_;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> nodes_;
};

}  // namespace

struct Summariser::State {
  Manifest manifest, of_every_node;
  std::map<std::string, NodeState> nodes;
  std::mutex mutex;
  std::once_flag prepared;
  std::vector<SharedLine> lines;  // over all nodes
  Summary summary;
  Total run_total;
  std::vector<SharedSum> shared;
  std::map<std::string, NodeState>::iterator next;  // the first node that has not been added up
  std::vector<std::string> locked;
  double net_variance = 0;  // of the run's net energy, square of the 95 % half-width
  double idle_j = 0;
  bool idle_known = true;
  ShortcutRates rates{0.0, 0.0};
  Shortcuts shortcuts{0.0, 0.0};
  NodeWarnings warnings;

  void prepare();
  [[nodiscard]] bool several() const { return !lines.empty(); }
  [[nodiscard]] std::optional<Interval> run_interval() const;
  [[nodiscard]] std::optional<Interval> node_interval(const NodeState& node) const;
  void begin_sums(MonoTime run_begin);
  void fold(NodeState& node);
  void fold_ready();
  void finish_regions();
  void finish_run();
};

// Makes every node's rows, once all nodes are known.
void Summariser::State::prepare() {
  std::vector<const std::vector<Region>*> regions;
  std::vector<const ClockMap*> clocks;
  for (auto& [name, node] : nodes) {
    regions.push_back(&node.regions);
    clocks.push_back(&node.clock);
  }
  if (has_several(regions))
    lines = share_lines(regions,
                        std::clamp(kMostShared / std::max<std::size_t>(1, nodes.size()), kFewestShared, kMostLines));
  const std::size_t most = std::max<std::size_t>(1, kMostLines / std::max<std::size_t>(1, nodes.size()));
  std::size_t self = 0;
  for (auto& [name, node] : nodes) {
    auto& rows = node.input.rows;
    rows = make_rows(node.input.part, std::move(node.regions), most);
    node.regions = {};
    const auto whole =
        std::find_if(rows.pieces.begin(), rows.pieces.end(), [](const Piece& piece) { return piece.row == kRunRow; });
    const Piece run = *whole;
    if (several()) add_shared(rows, lines, run, self, clocks);
    ++self;
  }
  next = nodes.begin();
  summary.warnings = manifest.warnings;
  if (manifest.begin) begin_sums(*manifest.begin);
}

void Summariser::State::begin_sums(MonoTime run_begin) {
  if (!shared.empty()) return;
  for (const auto& line : lines) shared.emplace_back(line, run_begin);
}

// Adds up the nodes that are settled, so far as all before them are.
void Summariser::State::fold_ready() {
  for (; next != nodes.end() && next->second.result; ++next) fold(next->second);
}

// The command's interval; where its begin or end is unknown, as far as readings and regions go.
std::optional<Interval> Summariser::State::run_interval() const {
  std::optional<std::int64_t> first, last;
  const auto widen = [&](std::int64_t begin, std::int64_t end) {
    first = std::min(first.value_or(begin), begin);
    last = std::max(last.value_or(end), end);
  };
  for (const auto& [name, node] : nodes) {
    for (const auto& c : node.input.candidates)
      if (c.readings > 0) widen(c.first_ns, c.last_ns);
    for (const auto& r : node.input.rows.regions) widen(to_ns(r.begin), to_ns(r.end));
    if (node.own_time && node.span) widen(to_ns(node.span->begin), to_ns(node.span->end));
  }
  if (manifest.begin) first = to_ns(*manifest.begin);
  if (manifest.end) last = to_ns(*manifest.end);
  if (!first || !last || *last < *first) return std::nullopt;
  return Interval{mono_ns(*first), mono_ns(*last)};
}

// When a node with a part of its own was part of the run; where that does not tell, as far as its readings go.
std::optional<Interval> Summariser::State::node_interval(const NodeState& node) const {
  std::optional<MonoTime> begin = node.input.part.begin, end = node.input.part.end;
  for (const auto& c : node.input.candidates) {
    if (c.readings == 0) continue;
    if (!node.input.part.begin) begin = std::min(begin.value_or(mono_ns(c.first_ns)), mono_ns(c.first_ns));
    if (!node.input.part.end) end = std::max(end.value_or(mono_ns(c.last_ns)), mono_ns(c.last_ns));
  }
  if (!begin || !end || *end < *begin) return std::nullopt;
  return Interval{*begin, *end};
}

// Adds a node's result; in the order of names, so that sums do not depend on which node came first.
void Summariser::State::fold(NodeState& node) {
  NodeResult& r = *node.result;
  add_total(run_total, r.total);
  net_variance += r.net_variance;
  idle_known &= r.idle_j.has_value();
  idle_j += r.idle_j.value_or(0);
  const Shortcuts one = r.rates.over(r.summary.duration_s.value_or(0));
  for (auto by : {&Shortcuts::tdp_j, &Shortcuts::mean_power_j}) {
    auto& sum = shortcuts.*by;
    sum = sum && one.*by ? std::optional(*sum + *(one.*by)) : std::nullopt;
  }
  for (std::size_t i = 0; i < r.shared.size(); ++i) shared[i].add(r.shared[i], r.shared_totals[i]);
  auto& regions = several() ? summary.rank_regions : summary.regions;
  for (auto& region : r.regions) {
    if (several()) region.node = r.summary.name;
    if (nodes.size() > kDetailedNodes) region.domains = {};
    regions.push_back(std::move(region));
  }
  if (!several()) std::move(r.pooled.begin(), r.pooled.end(), std::back_inserter(summary.pooled));
  locked.insert(locked.end(), r.locked.begin(), r.locked.end());
  if (nodes.size() > 1)
    warnings.add(r.summary.name, std::move(r.warnings));
  else
    std::move(r.warnings.begin(), r.warnings.end(), std::back_inserter(summary.warnings));
  summary.nodes.push_back(std::move(r.summary));
  node.result.reset();
}

void Summariser::State::finish_regions() {
  if (!several()) return;
  Rows rows;  // of the lines, for pooling
  for (auto& sum : shared) {
    summary.regions.push_back(sum.take());
    Region region;
    region.path = summary.regions.back().path;
    rows.lines.push_back({region.path, {static_cast<std::uint32_t>(rows.regions.size())}});
    rows.regions.push_back(std::move(region));
  }
  summary.pooled = pool_short(rows, summary.regions, locked);
}

void Summariser::State::finish_run() {
  auto& run = summary.run;
  run.exit_code = manifest.exit_code;
  run.energy_j = run_total.energy_j;
  run.uncertainty_j = run_total.uncertainty_j;
  run.modelled_j = run_total.modelled_j;
  const bool missing = manifest.parts && !manifest.parts->missing.empty();
  if (missing) run.missing_nodes = manifest.parts->missing;
  run.partial =
      run.energy_j && (run_total.inside < run_total.expected || run_total.coverage < kFullCoverage || missing);
  run.valid = manifest.state == "complete" && run.energy_j.has_value();
  if (run.energy_j && run.duration_s && idle_known && !nodes.empty()) {
    run.net_energy_j = *run.energy_j - idle_j;
    run.net_uncertainty_j = std::sqrt(net_variance);
  }
  if (run.energy_j && run.duration_s) run.shortcuts = shortcuts;
  if (manifest.overhead) {
    summary.overhead_cpu_s = manifest.overhead->cpu_s;
    if (run.duration_s && *run.duration_s > 0) summary.overhead_cpu_share = manifest.overhead->cpu_s / *run.duration_s;
  }
  // A node that is missing has been named by who read the run.
  if (manifest.state != "complete" && manifest.state != "incomplete")
    summary.warnings.push_back({"run-cut", "the measurement did not end in order (state: " + manifest.state + ")",
                                "what was recorded up to then is shown"});
  find_total_findings(summary, run_total.inside, run_total.expected, run_total.coverage, summary.warnings);
}

Summariser::Summariser(const Manifest& manifest) : state_(std::make_unique<State>()) {
  state_->manifest = manifest;
  // Each node gets a copy: not of the names of all the others.
  state_->of_every_node = manifest;
  state_->of_every_node.nodes = {};
  state_->of_every_node.parts.reset();
  state_->of_every_node.ranks = {};
}
Summariser::~Summariser() = default;

void Summariser::add_node(const Node& node, std::vector<Region> regions, const std::vector<Event>& events) {
  NodeState& added = state_->nodes[node.name];
  added.input.node = node;
  added.input.part = state_->of_every_node;
  added.input.events = events;
  added.regions = std::move(regions);
}

void Summariser::add_part(const Node& node, const Manifest& part, ClockMap clock, std::vector<Region> regions,
                          const std::vector<Event>& events) {
  NodeState& added = state_->nodes[node.name];
  added.input.node = node;
  added.input.part = part;
  added.input.part.clocks = {};
  added.input.events = events;
  added.regions = std::move(regions);
  added.clock = std::move(clock);
  added.own_time = true;
  if (part.begin && part.end && *part.end >= *part.begin) added.span = Interval{*part.begin, *part.end};
}

void Summariser::add_trace(const std::string& node_name, const Trace& trace) {
  std::call_once(state_->prepared, [&] { state_->prepare(); });
  const auto it = state_->nodes.find(node_name);
  if (it == state_->nodes.end()) return;
  NodeInput& node = it->second.input;
  std::vector<Candidate> candidates;
  std::vector<Gauge> gauges;
  const auto mirrors = find_mirrors(trace);
  for (std::size_t i = 0; i < trace.info.channels.size() && i < trace.columns.size(); ++i) {
    if (gives_energy(trace.info.channels[i])) {
      candidates.push_back(make_candidate(trace, i, node.rows));
      if (mirrors[i]) candidates.back().mirror_of = trace.info.channels[*mirrors[i]].domain;
    } else {
      add_gauges(trace, i, node.rows, gauges);
    }
  }
  const std::lock_guard lock(state_->mutex);
  std::move(candidates.begin(), candidates.end(), std::back_inserter(node.candidates));
  std::move(gauges.begin(), gauges.end(), std::back_inserter(node.gauges));
}

void Summariser::finish_node(const std::string& name) {
  State& s = *state_;
  std::call_once(s.prepared, [&] { s.prepare(); });
  const auto it = s.nodes.find(name);
  if (it == s.nodes.end()) return;
  NodeState& node = it->second;
  // What only the readings of all nodes tell has to wait for them.
  if (!node.span || !s.manifest.begin) return;
  auto result = settle_node(std::move(node.input), node.span, *s.manifest.begin);
  const std::lock_guard lock(s.mutex);
  node.result = std::move(result);
  s.fold_ready();
}

Summary Summariser::finish() {
  State& s = *state_;
  std::call_once(s.prepared, [&] { s.prepare(); });
  const auto interval = s.run_interval();
  if (interval) s.summary.run.duration_s = seconds(interval->duration());
  const MonoTime begin = interval ? interval->begin : mono_ns(0);
  s.begin_sums(begin);
  for (auto at = s.next; at != s.nodes.end(); ++at)
    if (!at->second.result) {
      const auto whole = at->second.own_time ? s.node_interval(at->second) : interval;
      at->second.result = settle_node(std::move(at->second.input), whole, begin);
    }
  s.fold_ready();
  s.warnings.take(s.summary.warnings);
  s.finish_regions();
  s.finish_run();
  condense(s.summary.warnings);
  return std::move(s.summary);
}

}  // namespace ergometer
