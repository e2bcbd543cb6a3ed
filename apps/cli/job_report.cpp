#include "job_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cluster/node_list.hpp"
#include "job_runs.hpp"
#include "report/units.hpp"

namespace ergometer::cli {
namespace {

constexpr double kMostlyCovered = 0.98;  // Slurm's times are whole seconds

// The record of a job that runs has no figure of its own. Steps of one node overlap in time, so theirs are not added:
// the largest is shown.
std::optional<double> slurm_energy(const SlurmJob& job) {
  if (job.consumed_j) return job.consumed_j;
  std::optional<double> largest;
  for (const auto& step : job.steps)
    if (step.consumed_j) largest = std::max(largest.value_or(0), *step.consumed_j);
  return largest;
}

void warn_of_gaps(JobReport& report) {
  const auto& account = report.account;
  if (!account.energy_j) {
    report.warnings.push_back(
        {"no-energy", fmt::format("no measured energy of job {}", report.job.shown),
         "measure its steps with srun --ergometer, or have ergometerd keep records of jobs (docs/cluster.md)"});
    return;
  }
  if (!account.missing.empty())
    report.warnings.push_back(
        {"incomplete",
         fmt::format("no energy of {}: the total is that of the other nodes", fmt::join(account.missing, ", ")),
         "their logs, beside the run's folder, say why"});
  else if (account.coverage < kMostlyCovered)
    report.warnings.push_back({"partly-measured",
                               fmt::format("readings cover {} of the job's time: the total is what was measured",
                                           percent_text(account.coverage)),
                               "with --ergometer on sbatch its script and all steps are measured"});
}

}  // namespace

JobReport report_of(const SlurmJob& job, bool known, const JobPlaces& places, WallTime now) {
  JobReport report;
  report.job = job;
  report.known = known;
  auto measured = measurements_of(job, places);
  report.warnings = std::move(measured.warnings);
  report.elapsed_s = job.elapsed_s;
  if (job.running()) report.elapsed_s = std::max(report.elapsed_s, seconds(now - *job.begin));
  if (!known) {  // then its measurements are all that tells its time
    std::optional<WallTime> begin, end;
    for (const auto& part : measured.parts) {
      begin = std::min(begin.value_or(part.begin), part.begin);
      end = std::max(end.value_or(part.end), part.end);
    }
    report.job.begin = begin;
    report.job.end = end;
    if (begin && end) report.elapsed_s = seconds(*end - *begin);
  }
  std::vector<std::string> expected;
  if (const auto names = expand_node_list(job.nodes); names && !job.nodes.empty()) expected = *names;
  report.account = account_job(measured.parts, expected, report.elapsed_s, cut_part);
  report.slurm_j = slurm_energy(job);
  if (!job.memory_bytes && measured.memory_bytes) {
    report.job.memory_bytes = measured.memory_bytes;
    report.warnings.push_back(
        {"memory-by-cgroup", "Slurm tells no memory of this job: the limit of its control groups is shown", ""});
  }
  if (job.begin) warn_of_gaps(report);
  return report;
}

void add_share(JobReport& report, const std::map<std::string, double>& node_cpus) {
  const auto cpus = report.job.tres.find("cpu");
  const auto nodes = expand_node_list(report.job.nodes);
  if (cpus == report.job.tres.end() || !nodes || report.job.nodes.empty()) return;
  JobShare share{cpus->second, 0, std::nullopt};
  for (const auto& node : *nodes) {
    const auto all = node_cpus.find(node);
    if (all == node_cpus.end()) return;
    share.node_cpus += all->second;
  }
  if (share.cpus >= share.node_cpus) return;
  if (report.account.energy_j) share.estimate_j = *report.account.energy_j * share.cpus / share.node_cpus;
  report.share = share;
}

}  // namespace ergometer::cli
