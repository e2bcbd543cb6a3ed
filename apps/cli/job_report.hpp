// What `ergometer job` knows of one job, and how it is shown. Used by job.cpp and job_summary.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/job_account.hpp"
#include "cluster/slurm_job.hpp"
#include "model/warning.hpp"

namespace ergometer::cli {

struct JobPlaces;

// A job that had a part of its nodes' CPUs only. The energies of a report are of whole nodes; this share of them is an
// estimate, and in no total.
struct JobShare {
  double cpus = 0, node_cpus = 0;    // of the job, of all its nodes
  std::optional<double> estimate_j;  // energy x cpus / node_cpus
};

struct JobReport {
  SlurmJob job;
  bool known = true;     // to Slurm: false if only measurements tell of it
  double elapsed_s = 0;  // with its nodes, up to now
  JobAccount account;
  std::optional<double> slurm_j;  // ConsumedEnergyRaw, of the job or else of its largest step
  std::optional<JobShare> share;  // unset: whole nodes, or not known
  std::vector<Warning> warnings;
};

// Asks for everything that is measured of a job and puts it together. `now` is the end of a job that runs.
[[nodiscard]] JobReport report_of(const SlurmJob& job, bool known, const JobPlaces& places, WallTime now);

// Finds out whether the job had its nodes for itself; `node_cpus` as of ask_node_cpus.
void add_share(JobReport& report, const std::map<std::string, double>& node_cpus);

// Strict JSON, schema "ergometer.job/1" (docs/cluster.md), without a final line end.
[[nodiscard]] std::string job_json(const JobReport& report);
// Tables for a terminal of `width` columns.
[[nodiscard]] std::string job_text(const JobReport& report, std::size_t width);

}  // namespace ergometer::cli
