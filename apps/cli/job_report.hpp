// What `ergometer job` knows of one job, and how it is shown. Used by job.cpp and job_summary.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/job_account.hpp"
#include "cluster/slurm_job.hpp"
#include "model/warning.hpp"

namespace ergometer::cli {

struct JobPlaces;

struct JobReport {
  SlurmJob job;
  bool known = true;     // to Slurm: false if only measurements tell of it
  double elapsed_s = 0;  // with its nodes, up to now
  JobAccount account;
  std::optional<double> slurm_j;  // ConsumedEnergyRaw, of the job or else of its largest step
  std::vector<Warning> warnings;
};

// Asks for everything that is measured of a job and puts it together. `now` is the end of a job that runs.
[[nodiscard]] JobReport report_of(const SlurmJob& job, bool known, const JobPlaces& places, WallTime now);

// Strict JSON, schema "ergometer.job/1" (docs/cluster.md), without a final line end.
[[nodiscard]] std::string job_json(const JobReport& report);
// Tables for a terminal of `width` columns.
[[nodiscard]] std::string job_text(const JobReport& report, std::size_t width);

}  // namespace ergometer::cli
