// Asks Slurm of jobs, with its own tools and so with its own rules of who may see what. Used by `ergometer job`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/result.hpp"
#include "cluster/slurm_job.hpp"

namespace ergometer {

struct SlurmAnswer {
  std::vector<SlurmJob> jobs;      // empty: Slurm knows none, or tells us of none
  bool accounting = false;         // sacct answered; without it only living jobs are known, without steps and energy
  std::vector<std::string> notes;  // what could not be asked, for the user
};

// One job, one task of an array ("12_3") or a whole array. Each tool has 20 s. Errors: an id that is none
// (invalid_argument), no Slurm here (not_found), Slurm refuses us this job (permission_denied).
[[nodiscard]] Result<SlurmAnswer> ask_job(const std::string& id, const Environment& environment);

// CPUs of nodes as Slurm counts them, by name; of "n[1-3]". Empty where it does not tell.
[[nodiscard]] std::map<std::string, double> ask_node_cpus(const std::string& nodes, const Environment& environment);

struct JobFilter {
  std::string user, account;  // "" is any; both empty: whom sacct takes for us
  std::string begin, end;     // "2026-11-01", "2026-12-01", local time
};
// Jobs that ran in a time, without their steps. Errors: no sacct, accounting that does not answer, what sacct refuses.
[[nodiscard]] Result<SlurmAnswer> ask_jobs(const JobFilter& filter, const Environment& environment);

}  // namespace ergometer
