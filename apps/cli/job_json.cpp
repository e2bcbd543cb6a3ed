// The report of a job as JSON.
#include <cmath>
#include <nlohmann/json.hpp>

#include "job_report.hpp"

namespace ergometer::cli {
namespace {

using JobJson = nlohmann::ordered_json;

JobJson value_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? JobJson(*value) : JobJson(nullptr);
}
JobJson time_or_null(const std::optional<WallTime>& t) { return t ? JobJson(to_ns(*t)) : JobJson(nullptr); }
JobJson text_or_null(const std::string& text) { return text.empty() ? JobJson(nullptr) : JobJson(text); }

JobJson domain_of_job(const JobDomain& d) {
  return {{"domain", d.energy.domain},
          {"device", d.energy.device},
          {"scope", to_word(d.energy.scope)},
          {"measured", d.energy.measured},
          {"source", d.source == JobPart::Source::daemon ? "daemon" : "run"},
          {"energy_j", value_or_null(d.energy.energy_j)},
          {"uncertainty_j", value_or_null(d.energy.uncertainty_j)},
          {"mean_power_w", value_or_null(d.energy.mean_power_w)},
          {"max_power_w", value_or_null(d.energy.max_power_w)},
          {"measured_s", d.measured_s},
          {"coverage", d.energy.coverage},
          {"in_total", d.energy.in_total},
          {"other_source_j", value_or_null(d.other_j)}};
}

JobJson node_of_job(const JobNode& n) {
  JobJson out{{"name", n.name},
              {"energy_j", value_or_null(n.energy_j)},
              {"uncertainty_j", value_or_null(n.uncertainty_j)},
              {"mean_power_w", value_or_null(n.mean_power_w)},
              {"max_power_bound_w", value_or_null(n.max_power_w)},
              {"measured_s", n.measured_s},
              {"coverage", n.coverage},
              {"idle_gpus", n.idle_gpus},
              {"idle_gpu_j", value_or_null(n.idle_gpu_j)}};
  out["domains"] = JobJson::array();
  for (const auto& domain : n.domains) out["domains"].push_back(domain_of_job(domain));
  return out;
}

JobJson step_of_job(const JobStepEnergy& s) {
  return {{"step", s.step},
          {"nodes", s.nodes},
          {"duration_s", s.duration_s},
          {"energy_j", value_or_null(s.energy_j)},
          {"uncertainty_j", value_or_null(s.uncertainty_j)},
          {"mean_power_w", value_or_null(s.mean_power_w)},
          {"complete", s.complete}};
}

JobJson slurm_of_job(const JobReport& r) {
  const auto& energy = r.account.energy_j;
  JobJson out{
      {"consumed_j", value_or_null(r.slurm_j)},
      {"difference", r.slurm_j && energy && *energy > 0 ? value_or_null(*r.slurm_j / *energy - 1) : JobJson(nullptr)}};
  out["steps"] = JobJson::array();
  for (const auto& step : r.job.steps)
    out["steps"].push_back({{"step", step.name},
                            {"name", step.title},
                            {"state", step.state},
                            {"nodes", text_or_null(step.nodes)},
                            {"begin_unix_ns", time_or_null(step.begin)},
                            {"end_unix_ns", time_or_null(step.end)},
                            {"consumed_j", value_or_null(step.consumed_j)}});
  return out;
}

}  // namespace

std::string job_json(const JobReport& r) {
  JobJson out;
  out["schema"] = "ergometer.job/1";
  out["job"] = r.job.shown;
  out["job_number"] = r.job.id;
  out["known_to_slurm"] = r.known;
  out["user"] = text_or_null(r.job.user);
  out["account"] = text_or_null(r.job.account);
  out["name"] = text_or_null(r.job.name);
  out["state"] = text_or_null(r.job.state);
  out["exit_code"] = text_or_null(r.job.exit_code);
  out["node_list"] = text_or_null(r.job.nodes);
  out["begin_unix_ns"] = time_or_null(r.job.begin);
  out["end_unix_ns"] = time_or_null(r.job.end);
  out["elapsed_s"] = r.elapsed_s;
  out["lives"] = r.job.lives;
  out["memory_bytes"] = value_or_null(r.job.memory_bytes);
  out["energy_j"] = value_or_null(r.account.energy_j);
  out["uncertainty_j"] = value_or_null(r.account.uncertainty_j);
  out["mean_power_w"] = value_or_null(r.account.mean_power_w);
  out["max_power_bound_w"] = value_or_null(r.account.max_power_w);
  out["coverage"] = r.account.coverage;
  out["missing_nodes"] = r.account.missing;
  out["nodes"] = JobJson::array();
  for (const auto& node : r.account.nodes) out["nodes"].push_back(node_of_job(node));
  out["steps"] = JobJson::array();
  for (const auto& step : r.account.steps) out["steps"].push_back(step_of_job(step));
  out["shared"] = nullptr;
  if (r.share)
    out["shared"] = {{"cpus", r.share->cpus},
                     {"node_cpus", r.share->node_cpus},
                     {"estimate_j", value_or_null(r.share->estimate_j)}};
  out["reported_by_slurm"] = slurm_of_job(r);
  out["warnings"] = JobJson::array();
  for (const auto& w : r.warnings)
    out["warnings"].push_back({{"code", w.code}, {"message", w.message}, {"remedy", w.remedy}});
  return out.dump(2, ' ', false, JobJson::error_handler_t::replace);
}

}  // namespace ergometer::cli
