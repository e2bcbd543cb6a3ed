// Rows: the intervals that a node's energy is asked for, as lines of the result: the run, its idle phases, and one a
// region. Where there are very many regions, siblings of one name share a line. Used by Summariser.
#pragma once

#include <cstdint>
#include <vector>

#include "model/manifest.hpp"
#include "model/region.hpp"

namespace ergometer {

// The first lines are the same in every run.
inline constexpr std::uint32_t kRunRow = 0, kIdleBeforeRow = 1, kIdleAfterRow = 2, kFirstRegionRow = 3;

// An unknown begin or end of the run: "as far as the readings go".
inline constexpr std::int64_t kUnknownBegin = INT64_MIN, kUnknownEnd = INT64_MAX;

// One interval and the line it belongs to.
struct Piece {
  std::int64_t begin, end;
  std::uint32_t row;
  // Where other nodes' clocks bound it: it may lie so much earlier or later, and be so much longer or shorter.
  std::int64_t shift_ns = 0, stretch_ns = 0;
};

struct RegionRow {
  std::string path;                    // of the region; of a pooled line the parent's path and the common name
  std::vector<std::uint32_t> members;  // indices into the regions
};

struct Rows {
  std::vector<Region> regions;   // by begin; of those that begin together the longer first
  std::vector<RegionRow> lines;  // line r of the result is lines[r - kFirstRegionRow]
  std::vector<Piece> pieces;     // by begin
  std::size_t shared = 0;        // lines over all nodes (shared.hpp), behind the node's own
  std::vector<double> shared_s;  // length of each of them on this node
  [[nodiscard]] std::size_t size() const { return kFirstRegionRow + lines.size() + shared; }
  [[nodiscard]] std::uint32_t shared_row(std::size_t line) const {
    return static_cast<std::uint32_t>(kFirstRegionRow + lines.size() + line);
  }
};

// Regions whose end lies before their begin get length 0. Above `most_lines` regions, the largest groups of siblings
// of one name are pooled until the number fits; if that is not enough, regions of one family.
[[nodiscard]] Rows make_rows(const Manifest& manifest, std::vector<Region> regions, std::size_t most_lines);

}  // namespace ergometer
