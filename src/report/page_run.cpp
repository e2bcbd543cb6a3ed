#include "report/page_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "report/json.hpp"
#include "report/page_json.hpp"
#include "report/units.hpp"

namespace ergometer {
namespace {

using page::Json;
using page::json_number;

constexpr std::size_t kMostEvents = 2000;
constexpr std::size_t kFewestRegionRows = 50, kMostRegionRows = 1000;
constexpr std::size_t kRegionValues = 20'000;  // domains and metrics over all region rows

// Where the page's time begins: the command's start, or where anything is known of the run.
std::int64_t origin_of(const RunPage& page) {
  if (page.manifest.begin) return to_ns(*page.manifest.begin);
  if (!page.manifest.clocks.empty()) return to_ns(page.manifest.clocks.front().mono);
  std::int64_t first = INT64_MAX;
  for (const auto& s : page.series)
    if (s.readings > 0) first = std::min(first, s.first_ns);
  return first == INT64_MAX ? 0 : first;
}

double since(std::int64_t t_ns, std::int64_t origin_ns) { return static_cast<double>(t_ns - origin_ns) * 1e-9; }

std::string utc_text(WallTime t) {
  const auto whole = static_cast<std::time_t>(to_ns(t) / 1'000'000'000);
  std::tm parts{};
  if (!::gmtime_r(&whole, &parts)) return {};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Json manifest_json(const Manifest& m, std::int64_t origin_ns) {
  Json out;
  out["name"] = m.name;
  out["command"] = m.command;
  out["directory"] = m.directory;
  out["environment"] = Json::object();
  for (const auto& [key, value] : m.environment) out["environment"][key] = value;
  out["tool_version"] = m.tool_version;
  out["state"] = m.state;
  out["started"] = nullptr;
  if (!m.clocks.empty()) {
    const auto& clock = m.clocks.front();
    const auto offset = m.begin ? *m.begin - clock.mono : Nanos{0};
    out["started"] = utc_text(clock.wall + offset);
  }
  out["end_s"] = m.end ? Json(since(to_ns(*m.end), origin_ns)) : Json(nullptr);
  out["signal"] = m.signal ? Json(*m.signal) : Json(nullptr);
  out["overhead_rss_bytes"] = m.overhead ? json_number(m.overhead->max_rss_bytes) : Json(nullptr);
  return out;
}

Json gpu_json(const GpuInfo& g) {
  return {{"domain", fmt::format("gpu/{}", g.index)},
          {"uuid", g.uuid},
          {"name", g.name},
          {"memory_bytes", json_number(g.memory_bytes)},
          {"power_limit_w", json_number(g.power_limit_w)},
          {"max_power_limit_w", json_number(g.max_power_limit_w)},
          {"visible", g.visible},
          {"mig", g.mig},
          {"state", g.state},
          {"note", g.note}};
}

Json sensor_json(const SensorInfo& s) {
  Json channels = Json::array();
  for (const auto& c : s.channels)
    channels.push_back({{"column", c.column}, {"domain", c.domain}, {"unit", c.unit}, {"profile", c.profile}});
  return {{"name", s.name},
          {"interface", s.interface},
          {"interval_s", seconds(s.interval)},
          {"channels", std::move(channels)},
          {"note", s.note}};
}

Json node_page_json(const Node& n) {
  Json out;
  out["name"] = n.name;
  out["hostname"] = n.hostname;
  out["kernel"] = n.kernel;
  out["cpu"] = {{"model", n.cpu.model},
                {"sockets", json_number(n.cpu.sockets)},
                {"cores", json_number(n.cpu.cores)},
                {"threads", json_number(n.cpu.threads)},
                {"quota_cpus", json_number(n.cpu.quota_cpus)}};
  out["memory_bytes"] = json_number(n.memory_bytes);
  out["memory_limit_bytes"] = json_number(n.memory_limit_bytes);
  for (const char* list : {"gpus", "sensors", "absences"}) out[list] = Json::array();
  for (const auto& g : n.gpus) out["gpus"].push_back(gpu_json(g));
  for (const auto& s : n.sensors) out["sensors"].push_back(sensor_json(s));
  for (const auto& a : n.absences)
    out["absences"].push_back(
        {{"interface", a.interface}, {"what", a.what}, {"reason", a.reason}, {"remedy", a.remedy}});
  out["versions"] = Json::object();
  for (const auto& [key, value] : n.versions) out["versions"][key] = value;
  return out;
}

Json lanes_json(const std::string& node, const Lanes& lanes, std::int64_t origin_ns) {
  Json bars = Json::array();
  for (std::size_t depth = 0; depth < lanes.depths.size(); ++depth)
    for (const auto& bar : lanes.depths[depth])
      bars.push_back(
          {depth, since(bar.begin_ns, origin_ns), since(bar.end_ns, origin_ns), bar.path, bar.count, bar.cut});
  return {{"node", node},           {"track", lanes.track},   {"regions", lanes.regions},
          {"hidden", lanes.hidden}, {"deeper", lanes.deeper}, {"bars", std::move(bars)}};
}

void add_events(const PageNode& node, std::int64_t origin_ns, Json& out) {
  for (const auto& e : node.events) {
    if (out.size() >= kMostEvents) return;
    out.push_back({{"node", node.node.name},
                   {"t", since(to_ns(e.t), origin_ns)},
                   {"source", e.source},
                   {"kind", e.kind},
                   {"detail", e.detail}});
  }
}

// Epochs first, then what is nearest to the root.
int importance(const RegionEnergy& r) {
  return (r.name == "epoch" ? 0 : 1) + 2 * static_cast<int>(std::count(r.path.begin(), r.path.end(), '/'));
}

// A summary whose regions fit the page, in their order.
Summary shortened_summary(const Summary& summary) {
  Summary out = summary;
  out.rank_regions.clear();  // the page shows ranks as lanes
  std::size_t widest = 1;
  for (const auto& r : summary.regions) widest = std::max(widest, 5 + r.domains.size() * 4 + r.metrics.size());
  const std::size_t rows = std::clamp(kRegionValues / widest, kFewestRegionRows, kMostRegionRows);
  if (summary.regions.size() <= rows) return out;
  std::vector<std::size_t> order(summary.regions.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return importance(summary.regions[a]) < importance(summary.regions[b]);
  });
  order.resize(rows);
  std::sort(order.begin(), order.end());
  out.regions.clear();
  for (const auto i : order) out.regions.push_back(summary.regions[i]);
  return out;
}

// Nodes whose readings lie wholly outside of the run's time: their clock is not the one that timed the run.
std::vector<Warning> clock_warnings(const RunPage& page) {
  std::vector<Warning> out;
  if (!page.manifest.begin || !page.manifest.end) return out;
  for (const auto& node : page.nodes) {
    std::int64_t first = INT64_MAX, last = INT64_MIN;
    for (const auto& s : page.series) {
      if (s.node != node.node.name || s.readings == 0) continue;
      first = std::min(first, s.first_ns);
      last = std::max(last, s.last_ns);
    }
    if (first > last || (first <= to_ns(*page.manifest.end) && last >= to_ns(*page.manifest.begin))) continue;
    out.push_back({"clocks-disagree",
                   fmt::format("the readings of node {} lie outside of the run's time: its clock is not the one that "
                               "timed the command",
                               node.node.name),
                   "merge the runs of several nodes with their own clock pairs, or look at each node's run by itself"});
  }
  return out;
}

}  // namespace

std::string run_page_json(const RunPage& page) {
  const std::int64_t origin = origin_of(page);
  Summary summary = shortened_summary(page.summary);
  for (auto& w : clock_warnings(page)) summary.warnings.push_back(std::move(w));
  Json out;
  out["schema"] = "ergometer.page/1";
  out["kind"] = "run";
  out["factors"] = page::factors_json(page.factors);
  out["manifest"] = manifest_json(page.manifest, origin);
  out["summary"] = Json::parse(summary_json(summary));
  out["regions_total"] = page.summary.regions.size();
  out["nodes_total"] = std::max(page.nodes_total, page.nodes.size());
  std::size_t events = 0;
  for (const char* list : {"nodes", "lanes", "events"}) out[list] = Json::array();
  for (const auto& node : page.nodes) {
    out["nodes"].push_back(node_page_json(node.node));
    for (const auto& lanes : node.tracks) out["lanes"].push_back(lanes_json(node.node.name, lanes, origin));
    add_events(node, origin, out["events"]);
    events += node.events.size();
  }
  out["events_total"] = events;
  std::string text = page::dump(out);
  text.pop_back();
  text += ",\"series\":[";
  for (std::size_t i = 0; i < page.series.size(); ++i) {
    if (i > 0) text += ',';
    page::append_series(text, page.series[i], origin);
  }
  text += "]}";
  return text;
}

std::string run_in_a_line(const Manifest& manifest, const Summary& summary) {
  const auto name = manifest.name.empty() ? std::string("This run") : manifest.name;
  const auto energy =
      summary.run.energy_j ? energy_text(*summary.run.energy_j) : std::string("an unknown amount of energy");
  const auto time = summary.run.duration_s ? " in " + duration_text(*summary.run.duration_s) : std::string();
  return fmt::format(
      "{}: {}{}. The figures of this page need JavaScript; the numbers alone are in summary.json, and "
      "`ergometer show` prints them.",
      name, energy, time);
}

}  // namespace ergometer
