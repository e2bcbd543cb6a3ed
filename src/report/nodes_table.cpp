#include "report/nodes_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "report/table.hpp"
#include "report/units.hpp"

namespace ergometer {
namespace {

constexpr std::size_t kFewNodes = 16;
constexpr std::size_t kMostRows = 32;
constexpr std::size_t kExtremes = 8;  // of each end, where there are more
constexpr std::size_t kMostRanks = 8;
constexpr const char* kPlusOrMinus = "\xC2\xB1";

std::string ranks_text(const std::vector<int>& ranks) {
  if (ranks.empty()) return kMissing;
  const bool run = ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size());
  if (run && ranks.size() > 2) return fmt::format("{}-{}", ranks.front(), ranks.back());
  const auto shown = static_cast<std::ptrdiff_t>(std::min(ranks.size(), kMostRanks));
  return fmt::format("{}{}", fmt::join(ranks.begin(), ranks.begin() + shown, ","),
                     ranks.size() > kMostRanks ? ",..." : "");
}

void add_row(Table& table, const NodeSummary& node) {
  const bool timed = node.energy_j && node.duration_s && *node.duration_s > 0;
  table.rows.push_back({printable(node.name), ranks_text(node.ranks),
                        node.duration_s ? seconds_text(*node.duration_s) : kMissing, with_unit(node.energy_j, "J"),
                        with_unit(node.uncertainty_j, "J", 2),
                        timed ? with_unit(*node.energy_j / *node.duration_s, "W") : kMissing,
                        node.energy_j ? percent_text(node.coverage) : kMissing});
}

}  // namespace

bool few_nodes(const Summary& summary) { return summary.nodes.size() <= kFewNodes; }

std::string nodes_in_a_line(const Summary& summary) {
  const auto& missing = summary.run.missing_nodes;
  if (summary.nodes.size() < 2 && missing.empty()) return {};
  std::set<int> ranks;
  for (const auto& node : summary.nodes) ranks.insert(node.ranks.begin(), node.ranks.end());
  std::string out = fmt::format("{}", summary.nodes.size());
  if (!ranks.empty()) out += fmt::format(", {} rank{}", ranks.size(), ranks.size() == 1 ? "" : "s");
  if (missing.empty()) return out;
  const auto shown = static_cast<std::ptrdiff_t>(std::min(missing.size(), kExtremes));
  out += fmt::format("; missing: {}",
                     printable(fmt::format("{}", fmt::join(missing.begin(), missing.begin() + shown, ", "))));
  if (missing.size() > kExtremes) out += fmt::format(" and {} more", missing.size() - kExtremes);
  return out;
}

std::string nodes_table(const Summary& summary, std::size_t width) {
  if (summary.nodes.size() < 2) return {};
  Table table;
  table.columns = {{"Node", false, 0},      {"Ranks", false, 3}, {"Time s", true, 2}, {"Energy", true, 0},
                   {kPlusOrMinus, true, 1}, {"Mean", true, 1},   {"Covered", true, 1}};
  std::vector<const NodeSummary*> nodes;
  for (const auto& node : summary.nodes) nodes.push_back(&node);
  if (nodes.size() <= kMostRows) {
    for (const auto* node : nodes) add_row(table, *node);
    return "\n" + render_table(table, width);
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const auto* a, const auto* b) { return a->energy_j.value_or(0) > b->energy_j.value_or(0); });
  for (std::size_t i = 0; i < kExtremes; ++i) add_row(table, *nodes[i]);
  for (std::size_t i = nodes.size() - kExtremes; i < nodes.size(); ++i) add_row(table, *nodes[i]);
  return "\n" + render_table(table, width) +
         fmt::format("  of {} nodes those that took most and least; ergometer export RUN --format csv has all\n",
                     nodes.size());
}

}  // namespace ergometer
