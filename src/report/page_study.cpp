#include "report/page_study.hpp"

#include "report/page_json.hpp"

namespace ergometer {
namespace {

using page::Json;
using page::json_number;

Json interval_json(const std::optional<PageInterval>& interval) {
  if (!interval) return nullptr;
  return Json::array({json_number(interval->low), json_number(interval->high)});
}

Json change_json(const PageChange& change) {
  return {{"share", json_number(change.share)}, {"interval", interval_json(change.interval)}};
}

Json factor_json(const StudyFactor& factor) {
  Json values = Json::array();
  for (std::size_t i = 0; i < factor.levels.size(); ++i)
    values.push_back(i < factor.values.size() ? json_number(factor.values[i]) : Json(nullptr));
  return {{"name", factor.name}, {"unit", factor.unit}, {"levels", factor.levels}, {"values", std::move(values)}};
}

Json run_row(const StudyRun& run) {
  Json metrics = Json::object();
  for (const auto& [name, value] : run.metrics)
    metrics[name] = Json::array({json_number(value.value), json_number(value.uncertainty)});
  return {{"cell", run.cell},       {"repetition", run.repetition},
          {"block", run.block},     {"order", run.order ? Json(*run.order) : Json(nullptr)},
          {"folder", run.folder},   {"verdict", to_word(run.verdict)},
          {"reasons", run.reasons}, {"metrics", std::move(metrics)}};
}

Json table_json(const StudyTable& table) {
  Json out{{"name", table.name}, {"description", table.description}};
  for (const char* list : {"factors", "metrics", "cells", "runs", "warnings"}) out[list] = Json::array();
  for (const auto& f : table.factors) out["factors"].push_back(factor_json(f));
  for (const auto& m : table.metrics)
    out["metrics"].push_back(
        {{"name", m.name}, {"title", m.title}, {"unit", m.unit}, {"lower_is_better", m.lower_is_better}});
  for (const auto& c : table.cells) out["cells"].push_back(c.levels);
  for (const auto& r : table.runs) out["runs"].push_back(run_row(r));
  for (const auto& w : table.warnings)
    out["warnings"].push_back({{"code", w.code}, {"message", w.message}, {"remedy", w.remedy}});
  return out;
}

Json fit_json(const PageFit& f) {
  return {{"factor", f.factor},
          {"metric", f.metric},
          {"group", f.group},
          {"cells", f.cells},
          {"a", json_number(f.a)},
          {"b", json_number(f.b)},
          {"c", json_number(f.c)},
          {"b_interval", interval_json(f.b_interval)},
          {"r_squared", json_number(f.r_squared)},
          {"held_out_error", json_number(f.held_out_error)},
          {"x_min", json_number(f.x_min)},
          {"x_max", json_number(f.x_max)}};
}

Json pick_json(const PagePick& p) {
  return {{"rule", p.rule},
          {"group", p.group},
          {"cell", p.cell},
          {"reference", p.reference},
          {"time", change_json(p.time)},
          {"energy", change_json(p.energy)},
          {"alike", p.alike},
          {"intervals_known", p.intervals_known}};
}

Json effect_json(const PageEffect& e) {
  Json levels = Json::array();
  for (const auto& l : e.levels)
    levels.push_back({{"level", l.level}, {"change", json_number(l.change)}, {"interval", interval_json(l.interval)}});
  return {{"factor", e.factor},
          {"metric", e.metric},
          {"levels", std::move(levels)},
          {"variance_share", json_number(e.variance_share)},
          {"p_value", json_number(e.p_value)},
          {"not_estimable", e.not_estimable}};
}

Json number_json(const PageNumber& n) {
  return Json::array({json_number(n.value), interval_json(n.interval)});
}

Json scaling_json(const PageScaling& s) {
  Json rows = Json::array();
  for (const auto& r : s.rows)
    rows.push_back({{"count", r.count},
                    {"time", json_number(r.time)},
                    {"time_interval", interval_json(r.time_interval)},
                    {"energy", json_number(r.energy)},
                    {"energy_interval", interval_json(r.energy_interval)},
                    {"speed_up", json_number(r.speed_up)},
                    {"speed_up_interval", interval_json(r.speed_up_interval)},
                    {"efficiency", json_number(r.efficiency)},
                    {"efficiency_interval", interval_json(r.efficiency_interval)},
                    {"energy_ratio", json_number(r.energy_ratio)},
                    {"energy_ratio_interval", interval_json(r.energy_ratio_interval)}});
  return {{"factor", s.factor}, {"group", s.group}, {"rows", std::move(rows)}};
}

Json rate_json(const PageRate& r) {
  return {{"work", r.work},
          {"joules_per_gpu_hour", json_number(r.joules_per_gpu_hour)},
          {"mean_power_w", json_number(r.mean_power_w)},
          {"interval", interval_json(r.interval)},
          {"r_squared", json_number(r.r_squared)},
          {"largest_deviation", json_number(r.largest_deviation)},
          {"runs", r.runs}};
}

Json classes_json(const std::optional<PageClasses>& classes) {
  if (!classes) return nullptr;
  Json out{{"modelled", classes->modelled}};
  for (const char* list : {"rows", "ratios", "idle", "break_even"}) out[list] = Json::array();
  for (const auto& r : classes->rows) {
    Json shares = Json::object();
    for (const auto& [component, share] : r.shares) shares[component] = json_number(share);
    out["rows"].push_back({{"class", r.node_class},
                           {"phase", r.phase},
                           {"setting", r.setting},
                           {"runtime", number_json(r.runtime_s)},
                           {"energy", number_json(r.energy_j)},
                           {"mean_power_w", json_number(r.mean_power_w)},
                           {"shares", std::move(shares)}});
  }
  for (const auto& r : classes->ratios)
    out["ratios"].push_back({{"a", r.a},
                             {"b", r.b},
                             {"phase", r.phase},
                             {"setting", r.setting},
                             {"runtime", number_json(r.runtime)},
                             {"energy", number_json(r.energy)},
                             {"proxy_error", json_number(r.proxy_error)},
                             {"is_proxy", r.runtime_is_proxy ? Json(*r.runtime_is_proxy) : Json(nullptr)}});
  for (const auto& r : classes->idle)
    out["idle"].push_back({{"class", r.node_class},
                           {"phase", r.phase},
                           {"setting", r.setting},
                           {"gpu_energy", number_json(r.gpu_energy_j)},
                           {"share", json_number(r.share)},
                           {"penalty", json_number(r.penalty)}});
  for (const auto& r : classes->break_even)
    out["break_even"].push_back({{"cpu_class", r.cpu_class},
                                 {"gpu_class", r.gpu_class},
                                 {"setting", r.setting},
                                 {"kind", r.kind},
                                 {"batch", json_number(r.batch)},
                                 {"low", json_number(r.low)},
                                 {"high", json_number(r.high)}});
  return out;
}

}  // namespace

std::string study_page_json(const StudyPage& page) {
  Json out{{"schema", "ergometer.page/1"}, {"kind", "study"}};
  out["factors"] = page::factors_json(page.factors);
  out["table"] = table_json(page.table);
  out["time_metric"] = page.time_metric.empty() ? Json(nullptr) : Json(page.time_metric);
  out["energy_metric"] = page.energy_metric.empty() ? Json(nullptr) : Json(page.energy_metric);
  out["work"] = page.work;
  for (const char* list : {"centres", "fits", "scaling", "rates", "fronts", "picks", "effects"}) out[list] = Json::array();
  for (const auto& c : page.centres)
    out["centres"].push_back({{"cell", c.cell},
                              {"metric", c.metric},
                              {"value", json_number(c.value)},
                              {"interval", interval_json(c.interval)},
                              {"count", c.count}});
  for (const auto& f : page.fits) out["fits"].push_back(fit_json(f));
  for (const auto& x : page.scaling) out["scaling"].push_back(scaling_json(x));
  for (const auto& r : page.rates) out["rates"].push_back(rate_json(r));
  out["classes"] = classes_json(page.classes);
  for (const auto& f : page.fronts)
    out["fronts"].push_back({{"group", f.group}, {"cells", f.cells}, {"front", f.front}, {"maybe", f.maybe}});
  for (const auto& p : page.picks) out["picks"].push_back(pick_json(p));
  for (const auto& e : page.effects) out["effects"].push_back(effect_json(e));
  out["missing"] = page.missing;
  return page::dump(out);
}

}  // namespace ergometer
