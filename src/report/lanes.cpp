#include "report/lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ergometer {
namespace {

constexpr std::size_t kDepths = 6;

bool same_track(const Region& a, const Region& b) { return a.rank == b.rank && a.pid == b.pid && a.tid == b.tid; }

// Whether `next` belongs to the run of narrow bars that ends with `bar`.
bool merges(const LaneBar& bar, const Region& next, std::int64_t least_ns) {
  const std::int64_t begin = to_ns(next.begin), end = std::max(begin, to_ns(next.end));
  const bool both_narrow = end - begin < least_ns && (bar.count > 1 || bar.end_ns - bar.begin_ns < least_ns);
  // A merged bar grows to a visible width and no further: what changes over time stays visible.
  return both_narrow && end - bar.begin_ns <= 2 * least_ns;
}

}  // namespace

Lanes make_lanes(const std::vector<Region>& regions, std::int64_t least_ns) {
  Lanes out;
  if (regions.empty()) return out;
  const Region* first = &regions.front();
  for (const auto& region : regions)
    if (region.rank < first->rank) first = &region;
  for (const auto& region : regions) {
    if (!same_track(region, *first)) {
      ++out.hidden;
      continue;
    }
    ++out.regions;
    const auto depth = static_cast<std::size_t>(std::count(region.path.begin(), region.path.end(), '/'));
    if (depth >= kDepths) {
      ++out.deeper;
      continue;
    }
    if (out.depths.size() <= depth) out.depths.resize(depth + 1);
    auto& lane = out.depths[depth];
    if (!lane.empty() && merges(lane.back(), region, least_ns)) {
      auto& bar = lane.back();
      bar.path = region.family();
      bar.end_ns = std::max(bar.end_ns, to_ns(region.end));
      bar.cut = bar.cut || region.cut;
      ++bar.count;
      continue;
    }
    lane.push_back({to_ns(region.begin), std::max(to_ns(region.begin), to_ns(region.end)), region.path, 1, region.cut});
  }
  if (out.hidden > 0)
    out.track = first->rank >= 0 ? fmt::format("rank {}", first->rank) : fmt::format("process {}", first->pid);
  return out;
}

std::vector<Lanes> make_tracks(const std::vector<Region>& regions, std::int64_t least_ns, std::size_t most) {
  std::map<int, std::vector<Region>> ranks;
  for (const auto& region : regions) ranks[region.rank].push_back(region);
  std::vector<Lanes> out;
  for (const auto& [rank, own] : ranks) {
    if (out.size() >= most) {
      if (!out.empty()) out.back().hidden += own.size();
      continue;
    }
    out.push_back(make_lanes(own, least_ns));
    if (ranks.size() > 1) out.back().track = rank >= 0 ? fmt::format("rank {}", rank) : "no rank";
  }
  return out;
}

}  // namespace ergometer
