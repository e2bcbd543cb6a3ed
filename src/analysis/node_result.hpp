// NodeResult: what one node's readings amount to, on every line. Made when the node's last trace has been seen, so that
// the readings of other nodes need no memory at the same time. Used by Summariser, which adds the nodes up.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/account.hpp"
#include "analysis/candidate.hpp"
#include "analysis/shared.hpp"
#include "analysis/totals.hpp"
#include "model/manifest.hpp"
#include "model/node.hpp"
#include "model/summary.hpp"

namespace ergometer {

// What is kept of a node while its traces come in.
struct NodeInput {
  Node node;
  Manifest part;  // times of the command and of the idle phases here
  Rows rows;
  std::vector<Event> events;
  std::vector<Candidate> candidates;
  std::vector<Gauge> gauges;
};

struct NodeResult {
  NodeSummary summary;
  Total total;
  std::vector<RegionEnergy> regions;  // the node's own
  std::vector<PooledRegions> pooled;  // of them
  std::vector<RegionEnergy> shared;   // its part of the lines over all nodes, in their order; without work metrics
  std::vector<Total> shared_totals;   // of each of them
  std::optional<double> idle_j;       // idle power times the node's time, if known
  double net_variance = 0;            // of the node's net energy, square of the 95 % half-width
  ShortcutRates rates;
  std::vector<std::string> locked;  // families of regions in phase with a device
  std::vector<Warning> warnings;
};

// `whole`: when the node was part of the run; times of regions are told since `run_begin`.
[[nodiscard]] NodeResult settle_node(NodeInput input, const std::optional<Interval>& whole, MonoTime run_begin);

// Adds a node's part of a line over all nodes to the sum: domains by name, gauges as means (ratios, frequencies,
// temperatures, powers) or sums (what grows, bytes, processor time).
class SharedSum {
 public:
  explicit SharedSum(const SharedLine& line, MonoTime run_begin);
  void add(const RegionEnergy& part, const Total& total);
  [[nodiscard]] RegionEnergy take();

 private:
  RegionEnergy out_;
  Total total_;
  double net_variance_ = 0;
  bool net_known_ = true;
  std::map<std::string, std::size_t> counts_;  // of metrics that are means
};

}  // namespace ergometer
