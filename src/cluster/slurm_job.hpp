// A job as Slurm tells it: what sacct and scontrol print, read into values. Pure. A figure that Slurm does not have
// (blank, 0, NO_VAL) is unset, never 0. Used by `ergometer job`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace ergometer {

// "cpu=16,mem=60G,node=1,gres/gpu=4": what was allocated, by name. Numbers take K, M, G, T, P as powers of 1024; a bare
// memory is in MiB, as Slurm counts it. Words that are no number are left out.
[[nodiscard]] std::map<std::string, double> parse_tres(std::string_view text);

// Memory of a whole job in bytes, from `scontrol show job` or AllocTRES of sacct: the value of AllocTRES= or TRES=
// wherever it stands, or the text itself. Unset where there is none.
[[nodiscard]] std::optional<double> job_memory_bytes(std::string_view text);

struct SlurmStep {
  std::string name;   // "0", "batch", "interactive"
  std::string title;  // of the command
  std::string state, nodes, exit_code;
  std::optional<WallTime> begin, end;  // end is unset while it runs
  std::optional<double> consumed_j;    // ConsumedEnergyRaw
  std::optional<double> tasks;
};

struct SlurmJob {
  std::string id;     // Slurm's number, of one job or one task of an array
  std::string shown;  // "12", "12_3"
  std::string user, account, name, partition, cluster, state, exit_code;
  std::string nodes;                   // Slurm's list, "n[1-3]"; "" before it started
  std::optional<WallTime> begin, end;  // of its first life, of its last; end is unset while it runs
  double elapsed_s = 0;                // of all its lives
  int lives = 1;                       // more than one: it was requeued
  std::map<std::string, double> tres;  // allocated
  std::optional<double> memory_bytes;  // allocated, of the whole job
  std::optional<double> consumed_j;    // ConsumedEnergyRaw: reported by Slurm, never part of a total of ours
  std::vector<SlurmStep> steps;

  [[nodiscard]] bool running() const { return begin && !end; }
};

// The columns that parse_sacct reads, for `sacct --format`.
inline constexpr const char* kSacctColumns =
    "JobIDRaw,JobID,User,Account,JobName,Partition,Cluster,State,NodeList,Start,End,ElapsedRaw,AllocTRES,"
    "ConsumedEnergyRaw,NTasks,ExitCode";

// `sacct --parsable2 --duplicates --format=kSacctColumns` with SLURM_TIME_FORMAT=%s, with its line of titles. One entry
// a job number, in Slurm's order; the lives of a requeued job are one. Lines that do not fit the titles are left out.
[[nodiscard]] std::vector<SlurmJob> parse_sacct(std::string_view text);

// CPUTot of `scontrol --oneliner show node LIST`, by node; without nodes that tell none.
[[nodiscard]] std::map<std::string, double> parse_node_cpus(std::string_view text);

// `scontrol --oneliner show job ID`, for a cluster without accounting: one entry a line. Times are without steps and
// energy.
[[nodiscard]] std::vector<SlurmJob> parse_scontrol_jobs(std::string_view text);

}  // namespace ergometer
