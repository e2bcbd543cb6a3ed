// ergometer job JOBID: the energy of a Slurm job by node, component and step, beside what Slurm says; --summary: of a
// month.
#include <fmt/format.h>

#include <memory>

#include "base/environment.hpp"
#include "base/text.hpp"
#include "cluster/slurm_query.hpp"
#include "command.hpp"
#include "job_report.hpp"
#include "job_runs.hpp"
#include "job_summary.hpp"
#include "report/units.hpp"
#include "terminal.hpp"

namespace ergometer::cli {
namespace {

struct JobOptions {
  std::string id, records = "/var/lib/ergometer/jobs";
  std::vector<std::string> runs;
  bool summary = false;
  SummaryWish wish;
};

void print_reports(const std::vector<JobReport>& reports, bool as_json) {
  const auto width = static_cast<std::size_t>(table_width());
  for (std::size_t i = 0; i < reports.size(); ++i) {
    if (as_json)
      fmt::print("{}{}{}", i == 0 && reports.size() > 1 ? "[\n" : "", job_json(reports[i]),
                 i + 1 < reports.size() ? ",\n" : "\n");
    else
      fmt::print("{}{}", i > 0 ? "\n" : "", job_text(reports[i], width));
  }
  if (as_json && reports.size() > 1) fmt::print("]\n");
  if (as_json || reports.size() < 2) return;
  std::optional<double> sum;
  std::size_t measured = 0;
  for (const auto& report : reports)
    if (report.account.energy_j) sum = sum.value_or(0) + *report.account.energy_j, ++measured;
  fmt::print("\nthe array: {} of {} jobs measured, {} together\n", measured, reports.size(), with_unit(sum, "J"));
}

int show_job(const JobOptions& options, const JobPlaces& places, const Environment& environment) {
  keep_freed_memory();
  const auto answer = ask_job(options.id, environment);
  if (!answer && answer.error().code == ErrorCode::invalid_argument) return report_error(answer.error());
  const auto now = SystemClock().wall();
  std::vector<JobReport> reports;
  if (answer)
    for (const auto& job : answer->jobs) {
      reports.push_back(report_of(job, true, places, now));
      add_share(reports.back(), ask_node_cpus(job.nodes, environment));
      for (const auto& note : answer->notes) reports.back().warnings.push_back({"slurm", note, ""});
    }
  if (reports.empty()) {
    // What was measured is ours and is shown, whatever Slurm remembers.
    SlurmJob job;
    job.id = job.shown = options.id;
    auto report = report_of(job, false, places, now);
    if (report.account.nodes.empty()) {
      for (const auto& warning : report.warnings)
        report_error({ErrorCode::unavailable, "warning: " + warning.message, warning.remedy});
      if (!answer) return report_error(answer.error());
      return report_error(
          {ErrorCode::not_found,
           fmt::format("Slurm knows no job {} of yours, and nothing was measured of it", options.id),
           "it never ran, or its record was purged, or it is somebody else's and this site shows only one's own"});
    }
    const auto reason = answer ? std::string("it was purged, never reached the accounting, or is not shown to you")
                               : answer.error().message;
    report.warnings.push_back({"unknown-to-slurm", fmt::format("Slurm tells nothing of job {}: {}", options.id, reason),
                               "nodes without a measurement cannot be named, and Slurm's own figure is not known"});
    reports.push_back(std::move(report));
  }
  print_reports(reports, options.wish.json);
  return 0;
}

int job(const JobOptions& options) {
  const auto environment = current_environment();
  const JobPlaces places{{options.runs.begin(), options.runs.end()}, options.records};
  if (options.summary && !options.id.empty())
    return report_error({ErrorCode::invalid_argument, "--summary is of a month, not of one job", "leave out either"});
  if (options.summary) return print_job_summary(options.wish, places, environment);
  if (options.id.empty())
    return report_error({ErrorCode::invalid_argument, "no job is given",
                         "give its number, as in: ergometer job 12; squeue and sacct list yours"});
  return show_job(options, places, environment);
}

}  // namespace

void add_job(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand("job", "The energy of a Slurm job, beside what Slurm says");
  const auto options = std::make_shared<JobOptions>();
  sub->add_option("JOBID", options->id, "Number of a job, running or ended; 12_3 for a task of an array");
  sub->add_option("RUN", options->runs, "Runs of this job that its index does not name");
  sub->add_option("--records", options->records, "Folder of the records that ergometerd keeps of jobs")
      ->type_name("DIR")
      ->capture_default_str();
  auto* summary = sub->add_flag("--summary", options->summary, "All jobs of a month instead of one");
  sub->add_option("--user", options->wish.user, "... of this user (default: yours)")->type_name("USER")->needs(summary);
  sub->add_option("--account", options->wish.account, "... of this account")->type_name("ACCOUNT")->needs(summary);
  sub->add_option("--month", options->wish.month, "... in this month, as in 2026-11 (default: this month)")
      ->type_name("MONTH")
      ->needs(summary);
  sub->add_flag("--json", options->wish.json, "Print JSON");
  sub->footer(
      "Examples:\n"
      "  ergometer job 12\n"
      "  ergometer job --summary --account physics --month 2026-11\n");
  sub->callback([options, &context] { context.exit_code = job(*options); });
}

}  // namespace ergometer::cli
