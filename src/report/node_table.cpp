#include "report/node_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/table.hpp"
#include "report/units.hpp"

namespace ergometer {
namespace {

constexpr const char* kPm = "\xC2\xB1";

std::string optional_percent(const std::optional<double>& share) {
  return share ? percent_text(*share) : std::string(kMissing);
}

std::string idle_gpu_text(const NodePart& part) {
  return part.note.empty() ? part.domain + " (idle)" : fmt::format("{} (idle, {})", part.domain, part.note);
}

std::string account_table(const NodeAccount& account, const std::string& title, std::size_t width) {
  Table table;
  table.columns = {{title, false, 0}, {"Energy", true, 0}, {kPm, true, 2}, {"Share", true, 0},
                   {"Idle", true, 1}, {"Net", true, 1},    {kPm, true, 2}, {"Measured by", false, 3}};
  const auto row = [&](const std::string& name, const NodePart& p) {
    table.rows.push_back({name, with_unit(p.energy_j, "J"), with_unit(p.uncertainty_j, "J", 2),
                          optional_percent(p.share), with_unit(p.idle_j, "J"), with_unit(p.net_j, "J"),
                          with_unit(p.net_uncertainty_j, "J", 2), printable(p.sensor)});
  };
  for (const auto& p : account.parts)
    if (p.role == PartRole::part) row(printable(p.domain), p);
  for (const auto& p : account.parts)
    if (p.role == PartRole::idle_gpu) row(printable(idle_gpu_text(p)), p);
  if (account.rest_j) {
    const auto share =
        account.energy_j && *account.energy_j > 0 ? std::optional(*account.rest_j / *account.energy_j) : std::nullopt;
    table.rows.push_back({"unexplained rest", with_unit(account.rest_j, "J"),
                          with_unit(account.rest_uncertainty_j, "J", 2), optional_percent(share), "", "", "",
                          "node meter minus parts"});
  }
  for (const auto& p : account.parts)
    if (p.role == PartRole::meter) row(printable(p.domain) + " (whole)", p);
  if (table.rows.empty()) return {};
  std::string out = "\n" + render_table(table, width);
  if (!account.unmeasured.empty())
    out +=
        wrapped(fmt::format("{}: {}", account.metered ? "in the rest, with no reading of their own" : "nobody measures",
                            printable(fmt::format("{}", fmt::join(account.unmeasured, ", ")))),
                width, 2);
  return out;
}

std::string baseline_table(const NodeSummary& node, std::size_t width) {
  if (node.baselines.empty()) return {};
  const auto power = [](const std::optional<double>& w, const std::optional<double>& u) {
    return w ? fmt::format("{} {} {}", with_unit(*w, "W"), kPm, with_unit(u.value_or(0), "W", 2))
             : std::string(kMissing);
  };
  Table table;
  table.columns = {{"Idle power", false, 0}, {"Before", true, 0}, {"", false, 2},
                   {"After", true, 0},       {"", false, 2},      {"Drift", true, 1}};
  for (const auto& b : node.baselines)
    table.rows.push_back({printable(b.domain), power(b.before_w, b.before_uncertainty_w), b.before,
                          power(b.after_w, b.after_uncertainty_w), b.after, power(b.drift_w, b.drift_uncertainty_w)});
  return "\n" + render_table(table, width);
}

// By domain: conclusion of the measured energy against what a time and a power would have given.
std::string shortcut_table(const NodeAccount& account, std::size_t width) {
  Table table;
  table.columns = {{"Instead of measuring", false, 0},
                   {"Energy", true, 0},
                   {"TDP", true, 2},
                   {"Time x TDP", true, 0},
                   {"Error", true, 0},
                   {"Mean power", true, 2},
                   {"Time x mean power", true, 1},
                   {"Error", true, 1}};
  for (const auto& p : account.parts) {
    if (!p.energy_j || *p.energy_j <= 0 || !(p.shortcuts.tdp_j || p.shortcuts.mean_power_j)) continue;
    if (p.role == PartRole::inside) continue;
    const auto error = [&](const std::optional<double>& by) {
      return by ? error_text(*by, *p.energy_j) : std::string(kMissing);
    };
    table.rows.push_back({printable(p.domain), with_unit(p.energy_j, "J"), with_unit(p.tdp_w, "W"),
                          with_unit(p.shortcuts.tdp_j, "J"), error(p.shortcuts.tdp_j), with_unit(p.mean_power_w, "W"),
                          with_unit(p.shortcuts.mean_power_j, "J"), error(p.shortcuts.mean_power_j)});
  }
  return table.rows.empty() ? std::string() : "\n" + render_table(table, width);
}

}  // namespace

std::string node_tables(const Summary& summary, const TextOptions& options) {
  const auto width = static_cast<std::size_t>(std::max(40, options.width));
  std::string out;
  for (const auto& node : summary.nodes) {
    if (!node.account) continue;
    const std::string title = summary.nodes.size() > 1 ? "Whole node " + printable(node.name) : "Whole node";
    out += account_table(*node.account, title, width);
    out += baseline_table(node, width);
    if (options.by == GroupBy::domain) out += shortcut_table(*node.account, width);
  }
  return out;
}

}  // namespace ergometer
