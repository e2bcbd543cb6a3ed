#include "analysis/rows.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "analysis/series.hpp"

namespace ergometer {
namespace {

MonoTime clamped(MonoTime t) { return mono_ns(std::clamp(to_ns(t), -kFarthestTime, kFarthestTime)); }

std::string group_key(const Region& region) {
  const auto parent = region.parent();
  std::string key(parent);
  if (!parent.empty()) key += '/';
  key += region.name();
  return key;
}

using Groups = std::unordered_map<std::string, std::vector<std::uint32_t>>;

// One line for each group that is pooled, one for each other region; in the order of their first member.
std::vector<RegionRow> lines_of(const std::vector<Region>& regions, Groups groups, std::size_t pool_from) {
  std::vector<RegionRow> lines;
  for (auto& [key, members] : groups) {
    if (members.size() >= pool_from && members.size() > 1) {
      lines.push_back({key, std::move(members)});
    } else {
      for (const auto m : members) lines.push_back({regions[m].path, {m}});
    }
  }
  std::sort(lines.begin(), lines.end(),
            [](const RegionRow& a, const RegionRow& b) { return a.members.front() < b.members.front(); });
  return lines;
}

Groups group(const std::vector<Region>& regions, bool by_family) {
  Groups groups;
  for (std::uint32_t i = 0; i < regions.size(); ++i)
    groups[by_family ? regions[i].family() : group_key(regions[i])].push_back(i);
  return groups;
}

// The smallest group size from which pooling brings the number of lines down to `most`, larger groups first.
std::size_t pool_threshold(const Groups& groups, std::size_t regions, std::size_t most) {
  std::map<std::size_t, std::size_t, std::greater<>> sizes;  // size -> number of groups
  for (const auto& [key, members] : groups) ++sizes[members.size()];
  std::size_t lines = regions, threshold = 2;
  for (const auto& [size, count] : sizes) {
    if (lines <= most) break;
    lines -= count * (size - 1);
    threshold = size;
  }
  return threshold;
}

}  // namespace

Rows make_rows(const Manifest& manifest, std::vector<Region> regions, std::size_t most_lines) {
  Rows rows;
  for (auto& r : regions) {
    r.begin = clamped(r.begin);
    r.end = std::max(clamped(r.end), r.begin);
  }
  std::stable_sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) {
    return std::tuple(a.begin, -to_ns(a.end)) < std::tuple(b.begin, -to_ns(b.end));
  });
  rows.regions = std::move(regions);

  const bool pool = rows.regions.size() > most_lines;
  if (!pool) {
    for (std::uint32_t i = 0; i < rows.regions.size(); ++i) rows.lines.push_back({rows.regions[i].path, {i}});
  } else {
    auto groups = group(rows.regions, false);
    const bool by_family = groups.size() > most_lines;
    if (by_family) groups = group(rows.regions, true);
    const std::size_t threshold = pool_threshold(groups, rows.regions.size(), most_lines);
    rows.lines = lines_of(rows.regions, std::move(groups), threshold);
  }

  const auto add_phase = [&](const std::optional<Interval>& phase, std::uint32_t row) {
    if (phase && phase->end > phase->begin)
      rows.pieces.push_back({to_ns(clamped(phase->begin)), to_ns(clamped(phase->end)), row});
  };
  const std::int64_t begin = manifest.begin ? to_ns(clamped(*manifest.begin)) : kUnknownBegin;
  const std::int64_t end = manifest.end ? to_ns(clamped(*manifest.end)) : kUnknownEnd;
  rows.pieces.push_back({begin, std::max(begin, end), kRunRow});
  add_phase(manifest.idle_before, kIdleBeforeRow);
  add_phase(manifest.idle_after, kIdleAfterRow);
  for (std::uint32_t line = 0; line < rows.lines.size(); ++line)
    for (const auto m : rows.lines[line].members)
      rows.pieces.push_back({to_ns(rows.regions[m].begin), to_ns(rows.regions[m].end), kFirstRegionRow + line});
  std::stable_sort(rows.pieces.begin(), rows.pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  return rows;
}

}  // namespace ergometer
