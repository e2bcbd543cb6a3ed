#include "report/json.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace ergometer {
namespace {

using Json = nlohmann::ordered_json;

// Above so many nodes each is told with one line a kind of device, without its account.
constexpr std::size_t kDetailedNodes = 256;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

Json domain_json(const DomainEnergy& d) {
  Json out;
  out["domain"] = d.domain;
  out["device"] = d.device;
  out["scope"] = to_word(d.scope);
  out["method"] = to_word(d.method);
  out["measured"] = d.measured;
  out["energy_j"] = number(d.energy_j);
  out["uncertainty_j"] = number(d.uncertainty_j);
  out["mean_power_w"] = number(d.mean_power_w);
  out["max_power_w"] = number(d.max_power_w);
  out["coverage"] = number(d.coverage);
  out["alternatives"] = Json::array();
  for (const auto& a : d.alternatives)
    out["alternatives"].push_back({{"method", to_word(a.method)},
                                   {"energy_j", number(a.energy_j)},
                                   {"uncertainty_j", number(a.uncertainty_j)},
                                   {"difference_j", number(a.difference_j)}});
  out["in_total"] = d.in_total;
  // Only where there is something to say; a region has one of these objects a domain.
  if (d.filled_j) out["filled_j"] = number(d.filled_j);
  if (d.gap_j) out["gap_j"] = number(d.gap_j);
  if (d.longest_gap_s) out["longest_gap_s"] = number(d.longest_gap_s);
  if (d.last_power_w) out["last_power_w"] = number(d.last_power_w);
  if (!d.note.empty()) out["note"] = d.note;
  return out;
}

Json domains_json(const std::vector<DomainEnergy>& domains) {
  Json out = Json::array();
  for (const auto& d : domains) out.push_back(domain_json(d));
  return out;
}

// The error is that of the shortcut against the measured energy, as a share of it.
void add_shortcuts(Json& out, const Shortcuts& s, const std::optional<double>& energy_j) {
  const auto error = [&](const std::optional<double>& by) {
    return by && energy_j && *energy_j > 0 ? number((*by - *energy_j) / *energy_j) : Json(nullptr);
  };
  out["shortcuts"] = {{"tdp_j", number(s.tdp_j)},
                      {"tdp_error", error(s.tdp_j)},
                      {"mean_power_j", number(s.mean_power_j)},
                      {"mean_power_error", error(s.mean_power_j)}};
}

Json part_json(const NodePart& p) {
  Json out{{"domain", p.domain},
           {"role", to_word(p.role)},
           {"sensor", p.sensor},
           {"energy_j", number(p.energy_j)},
           {"uncertainty_j", number(p.uncertainty_j)},
           {"share", number(p.share)},
           {"idle_j", number(p.idle_j)},
           {"net_j", number(p.net_j)},
           {"net_uncertainty_j", number(p.net_uncertainty_j)},
           {"tdp_w", number(p.tdp_w)},
           {"mean_power_w", number(p.mean_power_w)}};
  add_shortcuts(out, p.shortcuts, p.energy_j);
  if (!p.note.empty()) out["note"] = p.note;
  return out;
}

Json account_json(const NodeAccount& a) {
  Json out{{"energy_j", number(a.energy_j)}, {"uncertainty_j", number(a.uncertainty_j)}, {"metered", a.metered}};
  out["parts"] = Json::array();
  for (const auto& part : a.parts) out["parts"].push_back(part_json(part));
  out["rest_j"] = number(a.rest_j);
  out["rest_uncertainty_j"] = number(a.rest_uncertainty_j);
  out["unmeasured"] = a.unmeasured;
  out["idle_gpus"] = {{"count", a.idle_gpus},
                      {"energy_j", number(a.idle_gpu_j)},
                      {"uncertainty_j", number(a.idle_gpu_uncertainty_j)},
                      {"share", number(a.idle_gpu_share)}};
  return out;
}

Json baseline_json(const Baseline& b) {
  const auto text = [](const std::string& s) { return s.empty() ? Json(nullptr) : Json(s); };
  return {{"domain", b.domain},
          {"before_w", number(b.before_w)},
          {"before_uncertainty_w", number(b.before_uncertainty_w)},
          {"before_state", text(b.before)},
          {"after_w", number(b.after_w)},
          {"after_uncertainty_w", number(b.after_uncertainty_w)},
          {"after_state", text(b.after)},
          {"drift_w", number(b.drift_w)},
          {"drift_uncertainty_w", number(b.drift_uncertainty_w)},
          {"idle_w", number(b.idle_w)},
          {"idle_uncertainty_w", number(b.idle_uncertainty_w)}};
}

Json run_json(const RunSummary& run) {
  Json out;
  out["duration_s"] = number(run.duration_s);
  out["exit_code"] = run.exit_code ? Json(*run.exit_code) : Json(nullptr);
  out["energy_j"] = number(run.energy_j);
  out["uncertainty_j"] = number(run.uncertainty_j);
  out["valid"] = run.valid;
  out["net_energy_j"] = number(run.net_energy_j);
  out["net_uncertainty_j"] = number(run.net_uncertainty_j);
  out["modelled_j"] = number(run.modelled_j);
  const bool timed = run.energy_j && run.duration_s && *run.duration_s > 0;
  out["mean_power_w"] = timed ? number(*run.energy_j / *run.duration_s) : Json(nullptr);
  out["partial"] = run.partial;
  out["missing_nodes"] = run.missing_nodes;
  add_shortcuts(out, run.shortcuts, run.energy_j);
  return out;
}

Json node_head_json(const NodeSummary& node) {
  Json out;
  out["name"] = node.name;
  out["begin_s"] = number(node.begin_s);
  out["duration_s"] = number(node.duration_s);
  out["energy_j"] = number(node.energy_j);
  out["uncertainty_j"] = number(node.uncertainty_j);
  out["coverage"] = number(node.coverage);
  out["ranks"] = node.ranks;
  return out;
}

// The devices of one scope that are in the total, as one; of thousands of nodes nobody reads each device.
Json scopes_json(const NodeSummary& node) {
  std::map<Scope, std::pair<DomainEnergy, std::size_t>> scopes;
  for (const auto& d : node.domains) {
    if (!d.in_total || !d.measured || !d.energy_j) continue;
    const auto [it, fresh] = scopes.try_emplace(d.scope, d, 0);
    auto& [sum, devices] = it->second;
    ++devices;
    if (fresh) continue;
    sum.energy_j = *sum.energy_j + *d.energy_j;
    sum.uncertainty_j = std::hypot(sum.uncertainty_j.value_or(0), d.uncertainty_j.value_or(0));
    if (d.mean_power_w) sum.mean_power_w = sum.mean_power_w.value_or(0) + *d.mean_power_w;
    sum.coverage = std::min(sum.coverage, d.coverage);
  }
  Json out = Json::array();
  for (auto& [scope, entry] : scopes) {
    auto& [sum, devices] = entry;
    sum.domain = to_word(scope);
    sum.device = fmt::format("{} device{}", devices, devices == 1 ? "" : "s");
    sum.alternatives.clear();
    if (devices > 1) sum.max_power_w.reset();  // not reached at one moment
    out.push_back(domain_json(sum));
  }
  return out;
}

Json short_node_json(const NodeSummary& node) {
  Json out = node_head_json(node);
  out["domains"] = scopes_json(node);
  out["idle_power_w"] = number(node.idle_power_w);
  out["unexplained_j"] = number(node.unexplained_j);
  return out;
}

Json node_json(const NodeSummary& node) {
  Json out = node_head_json(node);
  out["domains"] = domains_json(node.domains);
  out["idle_power_w"] = number(node.idle_power_w);
  out["unexplained_j"] = number(node.unexplained_j);
  out["machine_energy_j"] = number(node.machine_energy_j);
  out["account"] = node.account ? account_json(*node.account) : Json(nullptr);
  out["baselines"] = Json::array();
  for (const auto& b : node.baselines) out["baselines"].push_back(baseline_json(b));
  out["attributions"] = Json::array();
  for (const auto& a : node.attributions)
    out["attributions"].push_back({{"domain", a.domain},
                                   {"method", a.method},
                                   {"energy_j", number(a.energy_j)},
                                   {"lower_j", number(a.lower_j)},
                                   {"upper_j", number(a.upper_j)},
                                   {"sharing", to_word(a.sharing)},
                                   {"note", a.note}});
  return out;
}

Json region_json(const RegionEnergy& r) {
  Json out;
  out["path"] = r.path;
  out["name"] = r.name;
  out["index"] = r.index ? Json(*r.index) : Json(nullptr);
  out["count"] = r.count;
  out["t_begin_s"] = number(r.t_begin_s);
  out["duration_s"] = number(r.duration_s);
  out["energy_j"] = number(r.energy_j);
  out["uncertainty_j"] = number(r.uncertainty_j);
  out["net_energy_j"] = number(r.net_energy_j);
  out["net_uncertainty_j"] = number(r.net_uncertainty_j);
  out["domains"] = domains_json(r.domains);
  out["metrics"] = Json::object();
  for (const auto& [key, value] : r.metrics) out["metrics"][key] = number(value);
  add_shortcuts(out, r.shortcuts, r.energy_j);
  out["modelled_j"] = number(r.modelled_j);
  out["coverage"] = number(r.coverage);
  out["cut"] = r.cut;
  out["low_confidence"] = r.low_confidence;
  out["rank"] = r.rank >= 0 ? Json(r.rank) : Json(nullptr);
  out["node"] = r.node.empty() ? Json(nullptr) : Json(r.node);
  out["ranks"] = r.ranks > 0 ? Json(r.ranks) : Json(nullptr);
  return out;
}

// Names come from anywhere; bytes that are no UTF-8 are replaced rather than refused.
std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void append_member(std::string& out, const char* key, const Json& value) {
  out += fmt::format("{} \"{}\": {}", out.size() > 2 ? ",\n" : "", key, dumped(value, 1));
}

// One entry after another, so that a summary of many nodes needs the memory of its text only.
template <class List, class ToJson>
void append_list(std::string& out, const char* key, std::initializer_list<const List*> lists, int indent,
                 const ToJson& to_json) {
  out += fmt::format(",\n \"{}\": [", key);
  bool any = false;
  for (const List* list : lists)
    for (const auto& entry : *list) {
      out += any ? ",\n" : "\n";
      out += dumped(to_json(entry), indent);
      any = true;
    }
  out += any ? "\n ]" : "]";
}

}  // namespace

std::string summary_json(const Summary& summary) {
  const bool brief = summary.nodes.size() > kDetailedNodes;
  const int indent = brief ? -1 : 1;
  const auto warning = [](const Warning& w) {
    return Json{{"code", w.code}, {"message", w.message}, {"remedy", w.remedy}};
  };
  const auto pooled = [](const PooledRegions& p) {
    return Json{{"path", p.path},
                {"count", p.count},
                {"mean_duration_s", number(p.mean_duration_s)},
                {"mean_energy_j", number(p.mean_energy_j)},
                {"uncertainty_j", number(p.uncertainty_j)}};
  };
  std::string out = "{\n";
  append_member(out, "schema", "ergometer.summary/1");
  append_member(out, "run", run_json(summary.run));
  append_list(out, "nodes", {&summary.nodes}, indent, brief ? short_node_json : node_json);
  append_list(out, "regions", {&summary.regions, &summary.rank_regions}, indent, region_json);
  append_list(out, "pooled", {&summary.pooled}, indent, pooled);
  append_member(out, "overhead",
                {{"cpu_s", number(summary.overhead_cpu_s)}, {"cpu_share", number(summary.overhead_cpu_share)}});
  append_list(out, "warnings", {&summary.warnings}, indent, warning);
  return out + "\n}\n";
}

}  // namespace ergometer
