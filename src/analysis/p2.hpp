// The tables of protocol 2 (Caspart et al. 2022, arXiv:2212.01698) from a study: runtime, energy and mean power by node
// class and phase; whether runtime is a proxy of energy; what idle accelerators cost; the batch at which CPU and GPU
// inference break even; the share of each component. Pure; used by `study show` and reports.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/statistics.hpp"
#include "base/result.hpp"
#include "model/study_table.hpp"

namespace ergometer {

// What the study calls things. A component's energy is a metric COMPONENT_energy_j: "gpu_energy_j", "cpu_energy_j", ...
struct P2Names {
  std::string node_class = "node_class", phase = "phase", batch = "batch";  // factors
  std::string inference = "inference";                                      // a level of `phase`
  std::string runtime_s = "duration_s", energy_j = "energy_j";              // metrics
  std::string energy_per_sample_j = "energy_per_sample_j";                  // a metric; energy_j stands in for it
  std::string gpu_activity = "gpu_active_ratio";                          // a metric, 0..1; tells idle accelerators
  std::vector<std::string> components = {"gpu", "cpu", "dram", "other"};
};

// One node class in one phase at one combination of the other factors.
struct P2Row {
  std::string node_class, phase, setting;  // setting: levels of the other factors that vary, "" if none does
  Centre runtime_s, energy_j;
  std::optional<double> mean_power_w;                 // energy over runtime
  std::map<std::string, double> component_shares;     // of the energy, 0..1; only those measured
};

// Two node classes at the same phase and setting: A against B.
struct P2Ratio {
  std::string a, b, phase, setting;
  double runtime_ratio = 1, energy_ratio = 1;  // A over B
  std::optional<Bounds> runtime_interval, energy_interval;
  double proxy_error = 0;  // energy_ratio / runtime_ratio - 1: what "energy follows runtime" gets wrong
  // Whether runtime tells the energy: the interval of energy_ratio / runtime_ratio holds 1 (unset without intervals).
  std::optional<bool> runtime_is_proxy;
};

// Runs on a node whose accelerators had nothing to do: mean activity below 1 %.
struct IdlePenalty {
  std::string node_class, phase, setting;
  Centre gpu_energy_j;
  double share = 0;    // of the energy that idle accelerators drew
  double penalty = 0;  // energy over what the node would have drawn without them, less 1
};

// The batch of inference at which a class with GPUs and one without use the same energy a sample (for each pair of them).
struct BreakEven {
  std::string cpu_class, gpu_class, setting;
  enum class Kind { at_batch, gpu_always, cpu_always } kind = Kind::at_batch;
  std::optional<double> batch;  // between two measured batches, on the log scale
  double low = 0, high = 0;     // the measured batches around it; or the range measured
};

struct P2Tables {
  std::vector<P2Row> rows;
  std::vector<P2Ratio> ratios;
  std::vector<IdlePenalty> idle;
  std::vector<BreakEven> break_even;
  std::vector<std::string> missing;  // tables that could not be made, and what they need
};

// Errors (invalid_argument): the study lacks the factor node_class or the two metrics; the message names them.
[[nodiscard]] Result<P2Tables> p2_tables(const StudyTable& table, const P2Names& names = {});

}  // namespace ergometer
