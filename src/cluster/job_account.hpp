// The account of one job: from what was measured of its nodes and steps, by whomever, to its energy, each moment of
// each device counted once. Pure. Used by `ergometer job`.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "model/summary.hpp"

namespace ergometer {

// One node's measurement over one interval: a part of a run directory, or the daemon's record of a job.
struct JobPart {
  enum class Source { run, daemon };
  Source source = Source::run;
  std::string path;         // of the run or record
  std::string step;         // "0", "batch"; "" of a record, which is of the whole job
  std::string node;         // parts of one node are of one machine
  WallTime begin{}, end{};  // of a part that still grows: as far as it goes
  bool complete = true;     // ended in order
  std::vector<DomainEnergy> domains;
  std::set<std::string> idle_gpus;  // allocated, and idle throughout
};

// One device of one node over the job.
struct JobDomain {
  DomainEnergy energy;  // coverage is of the job's time
  JobPart::Source source = JobPart::Source::run;
  double measured_s = 0;          // time that readings cover
  std::optional<double> other_j;  // what the other source says, where both have it
};

struct JobNode {
  std::string name;
  std::vector<JobDomain> domains;
  std::optional<double> energy_j, uncertainty_j;  // domains in the total
  std::optional<double> mean_power_w;             // over the measured time
  std::optional<double> max_power_w;  // the domains' highest readings together: not exceeded, maybe not reached
  double measured_s = 0;              // by the domain in the total that was measured longest
  double coverage = 0;                // of the job's time, lowest of the domains in the total
  std::vector<std::string> idle_gpus;
  std::optional<double> idle_gpu_j;
};

struct JobStepEnergy {
  std::string step;
  std::vector<std::string> nodes;
  std::optional<double> energy_j, uncertainty_j, mean_power_w;
  double duration_s = 0;
  bool complete = true;
};

struct JobAccount {
  std::vector<JobNode> nodes;        // by name
  std::vector<JobStepEnergy> steps;  // by begin
  std::optional<double> energy_j, uncertainty_j;
  std::optional<double> mean_power_w, max_power_w;  // sums over the nodes
  std::vector<std::string> missing;                 // expected nodes without energy
  double coverage = 0;                              // lowest of the nodes; 0 if one is missing
};

// The energies of a part within [begin, end) alone, for parts that overlap in part.
using CutPart = std::function<std::vector<DomainEnergy>(const JobPart& part, WallTime begin, WallTime end)>;

// `job_s`: the time for which the job had its nodes. Rules:
// - Of parts of a run that overlap on a node, an earlier one counts and of the later one only what it does not cover.
// - Of a run and a daemon's record the one that covers more of the time counts, device by device; within 1 % the run.
// - A node meter is added only where nothing inside the node is.
// - Of several parts of one device random errors add in quadrature and the others as they are; so do nodes in
// quadrature.
[[nodiscard]] JobAccount account_job(const std::vector<JobPart>& parts, const std::vector<std::string>& expected_nodes,
                                     double job_s, const CutPart& cut);

}  // namespace ergometer
