#include "job_summary.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>

#include "base/number.hpp"
#include "base/text.hpp"
#include "cluster/slurm_query.hpp"
#include "job_report.hpp"
#include "report/table.hpp"
#include "report/units.hpp"
#include "terminal.hpp"

namespace ergometer::cli {
namespace {

constexpr std::size_t kLargestJobs = 10;  // shown one by one in the text

struct Month {
  std::string name, begin, end;  // "2026-11", "2026-11-01", "2026-12-01"
  std::time_t begin_s = 0, end_s = 0;
};

std::time_t first_of(int year, int month) {
  std::tm parts{};
  parts.tm_year = year - 1900 + (month - 1) / 12;
  parts.tm_mon = (month - 1) % 12;
  parts.tm_mday = 1;
  parts.tm_isdst = -1;
  return std::mktime(&parts);
}

Result<Month> month_of(const std::string& text) {
  int year = 0, month = 0;
  if (text.empty()) {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::localtime_r(&now, &parts);
    year = parts.tm_year + 1900, month = parts.tm_mon + 1;
  } else {
    const auto y = text.size() == 7 && text[4] == '-' ? parse_uint(text.substr(0, 4)) : std::nullopt;
    const auto m = y ? parse_uint(text.substr(5)) : std::nullopt;
    if (!m || *m < 1 || *m > 12 || *y < 1970)
      return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is no month", text), "write it as 2026-11");
    year = static_cast<int>(*y), month = static_cast<int>(*m);
  }
  const int next_year = month == 12 ? year + 1 : year, next = month == 12 ? 1 : month + 1;
  return Month{fmt::format("{:04}-{:02}", year, month), fmt::format("{:04}-{:02}-01", year, month),
               fmt::format("{:04}-{:02}-01", next_year, next), first_of(year, month), first_of(next_year, next)};
}

struct Sums {
  std::size_t jobs = 0, measured = 0, by_slurm = 0;
  double hours = 0;  // of jobs times their nodes
  std::optional<double> energy_j, slurm_j;
  // Both figures of the jobs that have both: what can be compared.
  double both_energy_j = 0, both_slurm_j = 0;

  void add(const JobReport& r) {
    ++jobs;
    hours += r.elapsed_s / 3600 *
             static_cast<double>(std::max<std::size_t>(1, r.account.nodes.size() + r.account.missing.size()));
    if (r.account.energy_j) ++measured, energy_j = energy_j.value_or(0) + *r.account.energy_j;
    if (r.slurm_j) ++by_slurm, slurm_j = slurm_j.value_or(0) + *r.slurm_j;
    if (r.account.energy_j && r.slurm_j) both_energy_j += *r.account.energy_j, both_slurm_j += *r.slurm_j;
  }
};

// A job counts in the month in which it ended; one that has not ended in the month of now.
bool counts_in(const SlurmJob& job, const Month& month) {
  if (!job.begin) return false;
  const auto at =
      job.end ? to_ns(*job.end) / 1'000'000'000 : std::min<std::int64_t>(std::time(nullptr), month.end_s - 1);
  return at >= month.begin_s && at < month.end_s;
}

void print_text(const Month& month, const std::map<std::string, Sums>& by_user, const Sums& all,
                std::vector<JobReport>& reports) {
  const auto row = [](const std::string& name, const Sums& s) -> std::vector<std::string> {
    return {name,
            fmt::to_string(s.jobs),
            fmt::format("{:.1f}", s.hours),
            fmt::to_string(s.measured),
            with_unit(s.energy_j, "J"),
            fmt::to_string(s.by_slurm),
            with_unit(s.slurm_j, "J"),
            s.both_energy_j > 0 ? error_text(s.both_slurm_j, s.both_energy_j) : std::string(kMissing)};
  };
  Table users;
  users.columns = {{month.name, false, 0},         {"Jobs", true, 0},      {"Node hours", true, 0},
                   {"Measured jobs", true, 0},     {"Energy", true, 0},    {"Jobs by Slurm", true, 2},
                   {"Reported by Slurm", true, 1}, {"Difference", true, 2}};
  for (const auto& [user, sums] : by_user) users.rows.push_back(row(printable(user), sums));
  if (by_user.size() != 1) users.rows.push_back(row("all", all));
  const auto width = static_cast<std::size_t>(table_width());
  fmt::print("{}", render_table(users, width, 0));
  std::stable_sort(reports.begin(), reports.end(), [](const JobReport& a, const JobReport& b) {
    return a.account.energy_j.value_or(-1) > b.account.energy_j.value_or(-1);
  });
  Table largest;
  largest.columns = {{"Job", false, 0},     {"User", false, 2},  {"Name", false, 1},       {"State", false, 3},
                     {"Duration", true, 0}, {"Energy", true, 0}, {"Of its time", true, 2}, {"Slurm says", true, 1}};
  for (const auto& r : reports) {
    if (!r.account.energy_j || largest.rows.size() == kLargestJobs) break;
    largest.rows.push_back({r.job.shown, printable(r.job.user), printable(r.job.name), printable(r.job.state),
                            ergometer::duration_text(r.elapsed_s), with_unit(r.account.energy_j, "J"),
                            percent_text(r.account.coverage), with_unit(r.slurm_j, "J")});
  }
  if (!largest.rows.empty()) fmt::print("\n{}", render_table(largest, width, 0));
  if (all.measured < all.jobs)
    fmt::print("{} of {} jobs were not measured: the energy is that of the others\n", all.jobs - all.measured,
               all.jobs);
}

nlohmann::ordered_json sums_json(const Sums& s) {
  const auto or_null = [](const std::optional<double>& v) {
    return v ? nlohmann::ordered_json(*v) : nlohmann::ordered_json(nullptr);
  };
  return {{"jobs", s.jobs},
          {"node_hours", s.hours},
          {"measured_jobs", s.measured},
          {"energy_j", or_null(s.energy_j)},
          {"jobs_by_slurm", s.by_slurm},
          {"consumed_j", or_null(s.slurm_j)}};
}

void print_json(const Month& month, const std::map<std::string, Sums>& by_user, const Sums& all,
                const std::vector<JobReport>& reports) {
  nlohmann::ordered_json out;
  out["schema"] = "ergometer.job-summary/1";
  out["month"] = month.name;
  out["all"] = sums_json(all);
  out["users"] = nlohmann::ordered_json::object();
  for (const auto& [user, sums] : by_user) out["users"][user] = sums_json(sums);
  out["jobs"] = nlohmann::ordered_json::array();
  for (const auto& report : reports) out["jobs"].push_back(nlohmann::ordered_json::parse(job_json(report)));
  fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

int print_job_summary(const SummaryWish& wish, const JobPlaces& places, const Environment& environment) {
  const auto month = month_of(wish.month);
  if (!month) return report_error(month.error());
  const auto answer = ask_jobs({wish.user, wish.account, month->begin, month->end}, environment);
  if (!answer) return report_error(answer.error());
  keep_freed_memory();
  std::map<std::string, Sums> by_user;
  Sums all;
  std::vector<JobReport> reports;
  for (const auto& job : answer->jobs) {
    if (!counts_in(job, *month)) continue;
    reports.push_back(report_of(job, true, places, SystemClock().wall()));
    by_user[job.user].add(reports.back());
    all.add(reports.back());
  }
  if (wish.json)
    print_json(*month, by_user, all, reports);
  else if (reports.empty())
    fmt::print("Slurm's accounting tells of no job in {}{}\n", month->name,
               wish.user.empty() ? "" : " of " + wish.user);
  else
    print_text(*month, by_user, all, reports);
  return 0;
}

}  // namespace ergometer::cli
