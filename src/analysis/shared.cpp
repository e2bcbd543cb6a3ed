#include "analysis/shared.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "analysis/region_metrics.hpp"
#include "base/number.hpp"

namespace ergometer {
namespace {

struct Member {
  const Region* region;
  std::size_t node;
};
using Members = std::vector<Member>;
using ByPath = std::unordered_map<std::string, Members>;

// The times in which one of the members at least is open.
std::vector<SharedPiece> join(Members& members) {
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
    return std::pair(a.region->begin, a.node) < std::pair(b.region->begin, b.node);
  });
  std::vector<SharedPiece> out;
  for (const auto& [region, node] : members) {
    const std::int64_t begin = to_ns(region->begin), end = to_ns(region->end);
    if (!out.empty() && begin <= out.back().end) {
      if (end > out.back().end) {
        out.back().end = end;
        out.back().end_node = node;
      }
    } else {
      out.push_back({begin, end, node, node});
    }
  }
  return out;
}

void add_attributes(SharedLine& line, const Members& members, std::map<std::string, std::size_t>& counts) {
  for (const auto& [region, node] : members)
    for (const auto& [key, text] : region->attributes)
      if (const auto value = parse_double(text)) {
        line.metrics[key] += *value;
        ++counts[key];
      }
}

SharedLine line_of(const std::string& path, const std::vector<Members*>& paths) {
  SharedLine line;
  line.path = path;
  line.count = static_cast<std::int64_t>(paths.size());
  std::set<std::pair<int, std::size_t>> ranks;
  std::map<std::string, std::size_t> counts;
  for (Members* members : paths) {
    auto pieces = join(*members);
    line.pieces.insert(line.pieces.end(), pieces.begin(), pieces.end());
    add_attributes(line, *members, counts);
    // A rank is the same wherever it ran; without one the node stands for it.
    for (const auto& [region, node] : *members) {
      line.cut |= region->cut;
      ranks.insert({region->rank, region->rank >= 0 ? 0 : node});
    }
  }
  const Region& first = *paths.front()->front().region;
  line.name = first.name();
  if (line.count == 1) line.index = first.index();
  line.ranks = static_cast<int>(ranks.size());
  for (auto& [key, sum] : line.metrics)
    if (!is_work(key)) sum /= static_cast<double>(counts[key]);
  std::sort(line.pieces.begin(), line.pieces.end(),
            [](const SharedPiece& a, const SharedPiece& b) { return a.begin < b.begin; });
  return line;
}

}  // namespace

double SharedLine::duration_s() const {
  std::int64_t sum = 0;
  for (const auto& piece : pieces) sum += piece.end - piece.begin;
  return static_cast<double>(sum) / 1e9;
}

bool has_several(std::span<const std::vector<Region>* const> nodes) {
  if (nodes.size() > 1) return true;
  for (const auto* regions : nodes)
    for (const Region& region : *regions)
      if (region.rank != regions->front().rank) return true;
  return false;
}

std::vector<SharedLine> share_lines(std::span<const std::vector<Region>* const> nodes, std::size_t most) {
  ByPath by_path;
  for (std::size_t node = 0; node < nodes.size(); ++node)
    for (const Region& region : *nodes[node]) by_path[region.path].push_back({&region, node});
  const bool by_family = by_path.size() > most;
  std::map<std::string, std::vector<Members*>> lines;
  for (auto& [path, members] : by_path) lines[by_family ? members.front().region->family() : path].push_back(&members);
  std::vector<SharedLine> out;
  for (auto& [path, members] : lines) out.push_back(line_of(path, members));
  std::stable_sort(out.begin(), out.end(), [](const SharedLine& a, const SharedLine& b) {
    return std::pair(a.pieces.front().begin, -a.pieces.front().end) <
           std::pair(b.pieces.front().begin, -b.pieces.front().end);
  });
  return out;
}

void add_shared(Rows& rows, std::span<const SharedLine> lines, const Piece& whole, std::size_t self,
                std::span<const ClockMap* const> clocks) {
  rows.shared = lines.size();
  rows.shared_s.assign(lines.size(), 0);
  const auto error = [&](std::size_t node, std::int64_t t) {
    return node == self ? 0 : clocks[node]->error_ns(t) + clocks[self]->error_ns(t);
  };
  const auto stretch = [&](std::size_t node, std::int64_t a, std::int64_t b) {
    return node == self ? 0 : clocks[node]->stretch_error_ns(a, b) + clocks[self]->stretch_error_ns(a, b);
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const SharedPiece& shared : lines[i].pieces) {
      const std::int64_t begin = std::max(shared.begin, whole.begin), end = std::min(shared.end, whole.end);
      if (end <= begin) continue;
      Piece piece{begin, end, rows.shared_row(i)};
      // A bound that is the node's own begin or end is its own mark.
      const std::size_t begins = begin == shared.begin ? shared.begin_node : self;
      const std::size_t ends = end == shared.end ? shared.end_node : self;
      piece.shift_ns = std::max(error(begins, begin), error(ends, end));
      piece.stretch_ns = std::max(stretch(begins, begin, end), stretch(ends, begin, end));
      rows.shared_s[i] += static_cast<double>(end - begin) / 1e9;
      rows.pieces.push_back(piece);
    }
  }
  std::stable_sort(rows.pieces.begin(), rows.pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
}

}  // namespace ergometer
