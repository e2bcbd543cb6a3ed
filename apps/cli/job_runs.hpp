// The measurements of a job: the runs that its owner's index names, those given by hand, and the daemon's records. Used
// by `ergometer job`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cluster/job_account.hpp"
#include "cluster/slurm_job.hpp"
#include "model/warning.hpp"

namespace ergometer::cli {

struct JobPlaces {
  std::vector<std::filesystem::path> runs;  // given by hand
  std::filesystem::path records;            // JOBS/JOBID/NODE.json of the daemons
};

struct JobMeasurements {
  std::vector<JobPart> parts;
  std::vector<Warning> warnings;       // of what could not be read, and of the runs themselves
  std::optional<double> memory_bytes;  // limit of the control group on its nodes together, where the runs know one
};

// Everything that was measured of a job and that we may read. Whatever cannot be read becomes a warning. A run of
// another time is another job's that had the same number, and left out.
[[nodiscard]] JobMeasurements measurements_of(const SlurmJob& job, const JobPlaces& places);

// For account_job: reads a part of a run again, within an interval.
[[nodiscard]] std::vector<DomainEnergy> cut_part(const JobPart& part, WallTime begin, WallTime end);

}  // namespace ergometer::cli
