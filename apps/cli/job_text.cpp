// The report of a job for a terminal.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "job_report.hpp"
#include "report/table.hpp"
#include "report/units.hpp"

namespace ergometer::cli {
namespace {

constexpr const char* kPlusMinus = "\xC2\xB1";

std::string moment(const std::optional<WallTime>& t) {
  if (!t) return kMissing;
  const std::time_t s = to_ns(*t) / 1'000'000'000;
  std::tm parts{};
  return ::localtime_r(&s, &parts) ? fmt::format("{:%Y-%m-%d %H:%M:%S}", parts) : kMissing;
}

std::string heading(const JobReport& r) {
  const auto& job = r.job;
  if (!r.known)
    return fmt::format("job {}, which Slurm tells nothing of; measured from {} to {}\n", job.shown, moment(job.begin),
                       moment(job.end));
  std::string out = fmt::format("job {}", job.shown);
  if (!job.name.empty()) out += fmt::format(" \"{}\"", printable(job.name));
  if (!job.user.empty()) out += fmt::format(" of {}", printable(job.user));
  if (!job.account.empty()) out += fmt::format(", account {}", printable(job.account));
  out += fmt::format(": {}\n", job.state.empty() ? "state unknown" : printable(job.state));
  if (!job.begin) return out + "it has not begun\n";
  out += fmt::format("{} to {}, {}", moment(job.begin), job.end ? moment(job.end) : "now", ergometer::duration_text(r.elapsed_s));
  if (job.lives > 1) out += fmt::format(" in {} lives (it was requeued)", job.lives);
  if (!job.nodes.empty()) out += ", on " + printable(job.nodes);
  const auto gpus = job.tres.find("gres/gpu");
  if (gpus != job.tres.end()) out += fmt::format(", {} GPUs", gpus->second);
  if (job.memory_bytes) out += ", " + bytes_text(*job.memory_bytes);
  return out + "\n";
}

std::string source_word(const JobDomain& d) { return d.source == JobPart::Source::daemon ? "ergometerd" : "run"; }

std::string nodes_table(const JobReport& r, std::size_t width) {
  Table table;
  table.columns = {{"Node", false, 0},      {"Component", false, 0}, {"Energy", true, 0},   {kPlusMinus, true, 2},
                   {"Mean power", true, 0}, {"Peak power", true, 1}, {"Measured", true, 0}, {"By", false, 3}};
  for (const auto& node : r.account.nodes) {
    for (const auto& d : node.domains) {
      const auto& e = d.energy;
      const bool idle = std::find(node.idle_gpus.begin(), node.idle_gpus.end(), e.domain) != node.idle_gpus.end();
      const auto name = printable(e.domain) + (idle          ? " (idle)"
                                               : !e.measured ? " (model)"
                                               : e.in_total  ? ""
                                                             : " (not added)");
      table.rows.push_back({printable(node.name), name, (e.measured ? "" : "~") + with_unit(e.energy_j, "J"),
                            with_unit(e.uncertainty_j, "J", 2), with_unit(e.mean_power_w, "W"),
                            with_unit(e.max_power_w, "W"), percent_text(e.coverage), source_word(d)});
    }
    table.rows.push_back({printable(node.name), "all", with_unit(node.energy_j, "J"),
                          with_unit(node.uncertainty_j, "J", 2), with_unit(node.mean_power_w, "W"),
                          node.max_power_w ? "< " + with_unit(node.max_power_w, "W") : std::string(kMissing),
                          node.energy_j ? percent_text(node.coverage) : std::string(kMissing), ""});
  }
  for (const auto& name : r.account.missing)
    table.rows.push_back({printable(name), "not measured", kMissing, "", kMissing, kMissing, kMissing, ""});
  const auto& a = r.account;
  if (a.nodes.size() + a.missing.size() > 1)
    table.rows.push_back({"total", a.missing.empty() ? "" : "incomplete", with_unit(a.energy_j, "J"),
                          with_unit(a.uncertainty_j, "J", 2), with_unit(a.mean_power_w, "W"),
                          a.max_power_w ? "< " + with_unit(a.max_power_w, "W") : std::string(kMissing),
                          percent_text(a.coverage), ""});
  return table.rows.empty() ? std::string() : "\n" + render_table(table, width);
}

const SlurmStep* slurm_step(const SlurmJob& job, const std::string& name) {
  const auto step =
      std::find_if(job.steps.begin(), job.steps.end(), [&](const SlurmStep& s) { return s.name == name; });
  return step == job.steps.end() ? nullptr : &*step;
}

std::string steps_table(const JobReport& r, std::size_t width) {
  Table table;
  table.columns = {{"Step", false, 0},      {"Command", false, 2},   {"Nodes", true, 1},
                   {"Duration", true, 0},   {"Energy", true, 0},     {kPlusMinus, true, 3},
                   {"Mean power", true, 1}, {"Slurm says", true, 2}, {"State", false, 2}};
  for (const auto& step : r.account.steps) {
    const auto* told = slurm_step(r.job, step.step);
    table.rows.push_back({printable(step.step), told ? printable(told->title) : "", fmt::to_string(step.nodes.size()),
                          ergometer::duration_text(step.duration_s), with_unit(step.energy_j, "J"),
                          with_unit(step.uncertainty_j, "J", 2), with_unit(step.mean_power_w, "W"),
                          told && told->consumed_j ? with_unit(*told->consumed_j, "J") : "",
                          told            ? printable(told->state)
                          : step.complete ? ""
                                          : "not ended"});
  }
  for (const auto& step : r.job.steps) {
    const bool measured =
        std::any_of(r.account.steps.begin(), r.account.steps.end(), [&](const auto& s) { return s.step == step.name; });
    if (measured) continue;
    const auto duration =
        step.begin && step.end ? ergometer::duration_text(seconds(*step.end - *step.begin)) : std::string(kMissing);
    table.rows.push_back({printable(step.name), printable(step.title), "", duration, kMissing, "", kMissing,
                          step.consumed_j ? with_unit(*step.consumed_j, "J") : "", printable(step.state)});
  }
  return table.rows.empty() ? std::string() : "\n" + render_table(table, width);
}

std::string slurm_line(const JobReport& r, std::size_t width) {
  if (!r.known) return {};
  if (!r.slurm_j) return "\nreported by Slurm: not available (no ConsumedEnergyRaw of this job)\n";
  std::string out =
      fmt::format("\nreported by Slurm: {} (ConsumedEnergyRaw), in no total above", with_unit(*r.slurm_j, "J"));
  const auto& energy = r.account.energy_j;
  if (energy && *energy > 0) {
    out += fmt::format("; {} against what was measured\n", error_text(*r.slurm_j, *energy));
    if (std::abs(*r.slurm_j / *energy - 1) > 0.1)
      out += wrapped(
          "Slurm counts what its energy plugin reads, from the first to the last step; some sites' figures are known "
          "to be too high. "
          "Ask your site what AcctGatherEnergyType contains before you use either.",
          width, 2);
    return out;
  }
  return out + "\n";
}

}  // namespace

std::string job_text(const JobReport& r, std::size_t width) {
  std::string out = heading(r) + nodes_table(r, width) + steps_table(r, width);
  for (const auto& node : r.account.nodes)
    if (!node.idle_gpus.empty())
      out +=
          fmt::format("\n{}: {} allocated and idle throughout, {}\n", printable(node.name),
                      printable(fmt::format("{}", fmt::join(node.idle_gpus, ", "))), with_unit(node.idle_gpu_j, "J"));
  if (r.share) {
    std::string told = fmt::format("the nodes were shared: the job had {:g} of their {:g} CPUs, and the energies above are of "
                                   "whole nodes",
                                   r.share->cpus, r.share->node_cpus);
    if (r.share->estimate_j)
      told += fmt::format("; by CPUs its own part would be ~{}, an estimate", with_unit(*r.share->estimate_j, "J"));
    out += "\n" + wrapped(told, width, 0);
  }
  out += slurm_line(r, width);
  for (const auto& w : r.warnings) {
    out += wrapped("warning: " + printable(w.message), width, 0);
    if (!w.remedy.empty()) out += wrapped(printable(w.remedy), width, 2);
  }
  return out;
}

}  // namespace ergometer::cli
