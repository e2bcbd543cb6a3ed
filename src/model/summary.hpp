// Summary: what a run's rows and regions amount to; summary.json in memory. A plain value that analysis makes and
// report prints. Every optional that is unset is unknown and is written as null, never as 0.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "model/channel.hpp"
#include "model/manifest.hpp"
#include "model/warning.hpp"

namespace ergometer {

// Energy of the same domain and interval by another method.
struct Alternative {
  Method method = Method::counter;
  std::optional<double> energy_j;
  std::optional<double> uncertainty_j;  // half-width of a 95 % interval
  std::optional<double> difference_j;   // energy_j minus that of the chosen method
};

// Where an uncertainty comes from, as half-widths of 95 % intervals. They combine in quadrature to the whole; over
// several intervals or in differences each part follows its own rule (docs/method.md, section 7).
struct UncertaintyParts {
  double random_j = 0;  // edges and what lies between readings: independent from interval to interval
  double hidden_j = 0;  // load that changes within one reading: alike in repetitions of the same work
  double gain_j = 0;    // proportional to the energy, one factor a device
  double offset_j = 0;  // proportional to the time, one level a device
  double clock_j = 0;   // where another node's clock bounds the interval: alike in all devices
};

// One domain over one interval.
struct DomainEnergy {
  std::string domain;  // "gpu/0"
  std::string device;  // UUID or name
  Scope scope = Scope::node;
  Method method = Method::counter;  // of energy_j
  bool measured = true;             // false: modelled
  std::optional<double> energy_j;
  std::optional<double> uncertainty_j;  // half-width of a 95 % interval
  UncertaintyParts parts;               // of uncertainty_j
  std::optional<double> mean_power_w;   // energy_j over the covered time
  std::optional<double> max_power_w;    // highest reading
  std::optional<double> last_power_w;   // newest reading; only for whole runs
  double coverage = 0;                  // share of the interval that readings cover, 0..1
  std::optional<double> filled_j;       // part of energy_j that another channel filled in, if any
  std::optional<double> gap_j;          // what gaps of a power series would add if bridged; not in energy_j
  std::optional<double> longest_gap_s;  // only for whole runs; unset without a gap
  std::vector<Alternative> alternatives;
  bool in_total = true;
  std::string note;  // why not in the total, what is odd
};

// What is often taken for an energy: a time times a power. Stands beside what was measured, to show how wrong it is.
struct Shortcuts {
  std::optional<double> tdp_j;         // time x thermal design power (of a GPU its default power limit)
  std::optional<double> mean_power_j;  // time x the mean power of the whole run
};

struct RegionEnergy {
  std::string path, name;
  std::optional<std::int64_t> index;
  std::int64_t count = 1;  // regions pooled in this row (1: a single region)
  double t_begin_s = 0;    // since the command's start; of the first if pooled
  double duration_s = 0;   // sum if pooled
  bool cut = false;
  int rank = -1;
  std::string node;  // of a rank's own region; "" for what is of the whole run
  int ranks = 0;     // of a line over all nodes: how many ranks had it; else 0
  std::optional<double> energy_j, uncertainty_j, net_energy_j;  // measured domains in the total
  std::optional<double> net_uncertainty_j;                      // of net_energy_j
  std::optional<double> modelled_j;                             // modelled domains, never part of energy_j
  double coverage = 0;                                          // lowest of the domains in the total
  bool low_confidence = false;                                  // shorter than the sensors resolve
  std::vector<DomainEnergy> domains;
  Shortcuts shortcuts;                    // sums over the domains in the total
  std::map<std::string, double> metrics;  // "loss", "samples", "gpu/0/sm_active_ratio", "tree/cpu_ratio", ...
};

// Whether others used a device or node during the run.
enum class Sharing {
  alone,
  shared,
  unknown,  // there were processes whose owner could not be told
};
[[nodiscard]] const char* to_word(Sharing);

// The measured command's part of the energy of a shared domain: an estimate, never a measurement, and in no total.
struct Attribution {
  std::string domain;               // "gpu/0"; "packages" for all processor packages together
  std::string method;               // "sm_share", "memory_activity", "cpu_time", "mig_slices"
  std::optional<double> energy_j;   // unset where only bounds are known
  double lower_j = 0, upper_j = 0;  // whatever way of sharing out
  Sharing sharing = Sharing::unknown;
  std::string note;  // why there is no estimate
};

// The regions of one name together, where one of them is shorter than the sensors resolve.
struct PooledRegions {
  std::string path;  // "train/epoch/step"
  std::int64_t count = 0;
  double mean_duration_s = 0;
  double mean_energy_j = 0, uncertainty_j = 0;  // of one of them, measured domains in the total
};

// Idle power of one domain before and after the command, with half-widths of 95 % intervals that leave out what the
// device gets wrong throughout.
struct Baseline {
  std::string domain;
  std::optional<double> before_w, before_uncertainty_w, after_w, after_uncertainty_w;
  std::optional<double> drift_w, drift_uncertainty_w;  // after - before
  double idle_w = 0, idle_uncertainty_w = 0;           // what is subtracted; with half of the drift
  std::string before, after;  // of a GPU: "no CUDA context", "1 compute process"; "" if unknown
};

// What a domain is in the account of its node.
enum class PartRole {
  part,      // one of the parts that add up
  idle_gpu,  // one of them, a GPU that did nothing throughout the run
  meter,     // reads the whole node
  inside,    // inside a part, or shown for comparison
};
[[nodiscard]] const char* to_word(PartRole);

struct NodePart {
  std::string domain;
  PartRole role = PartRole::part;
  std::string sensor;  // who measured it: name of the sensor and its interface
  std::optional<double> energy_j, uncertainty_j;
  std::optional<double> share;                     // of the node's energy; parts and idle GPUs
  std::optional<double> idle_j;                    // idle power times duration
  std::optional<double> net_j, net_uncertainty_j;  // energy minus idle_j
  std::optional<double> tdp_w, mean_power_w;       // of the shortcuts
  Shortcuts shortcuts;
  std::string note;  // "no CUDA context", ...
};

// Where the energy of a whole node went, and what of it nobody measured.
struct NodeAccount {
  std::optional<double> energy_j, uncertainty_j;  // of the node meter; without one the sum of the measured parts
  bool metered = false;                           // energy_j is a node meter's
  std::vector<NodePart> parts;
  std::optional<double> rest_j, rest_uncertainty_j;  // node meter minus parts: the unexplained rest
  std::vector<std::string> unmeasured;               // "dram", "6 fans": of no reading of their own
  std::size_t idle_gpus = 0;
  std::optional<double> idle_gpu_j, idle_gpu_uncertainty_j, idle_gpu_share;  // of all of them together
};

struct NodeSummary {
  std::string name;
  double begin_s = 0;                             // since the run's begin
  std::optional<double> duration_s;               // over which the node was part of the run
  std::optional<double> energy_j, uncertainty_j;  // measured domains in the total
  double coverage = 0;                            // lowest of the domains in the total
  std::vector<int> ranks;                         // that ran there, if they are known
  std::vector<DomainEnergy> domains;
  std::vector<Attribution> attributions;  // the command's part of what it shares
  std::vector<Baseline> baselines;        // of the domains that were measured in an idle phase
  std::optional<NodeAccount> account;
  std::optional<double> idle_power_w;      // measured before (and after) the command, domains in the total
  std::optional<double> unexplained_j;     // node meter minus its parts; unset without a node meter
  std::optional<double> machine_energy_j;  // all GPUs present, also those that the command could not use
};

struct RunSummary {
  std::optional<double> duration_s;
  std::optional<int> exit_code;
  std::optional<double> energy_j, uncertainty_j;  // measured domains in the total
  std::optional<double> net_energy_j;             // minus idle power times duration, when idle was measured
  std::optional<double> net_uncertainty_j;
  std::optional<double> modelled_j;        // modelled domains, never part of energy_j
  Shortcuts shortcuts;                     // sums over the domains in the total
  bool partial = false;                    // a device or node that should be inside is not, or not throughout
  bool valid = true;                       // false: cut, a node missing, or nothing could be measured
  std::vector<std::string> missing_nodes;  // of which nothing was recorded: by name, or "2 of 3 nodes"
};

struct Summary {
  RunSummary run;
  std::vector<NodeSummary> nodes;
  // Of the run: each once, over all nodes and ranks. These may be added up, the next must not be.
  std::vector<RegionEnergy> regions;
  // Each rank's own regions with the energy of its whole node, where the run has several nodes or ranks; else empty.
  std::vector<RegionEnergy> rank_regions;
  std::vector<PooledRegions> pooled;
  std::optional<double> overhead_cpu_s, overhead_cpu_share;  // share of one core
  std::vector<Warning> warnings;
};

}  // namespace ergometer
