// Lanes: regions as rows of bars, one row a depth, as a trace viewer shows them; however many regions there are, only
// as many bars as can be seen. Used by `ergometer report`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/region.hpp"

namespace ergometer {

struct LaneBar {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::string path;       // of a single region; the family of merged ones
  std::size_t count = 1;  // regions in this bar
  bool cut = false;
};

struct Lanes {
  std::vector<std::vector<LaneBar>> depths;  // bars by begin; outermost regions first
  std::size_t regions = 0;                   // on the shown track
  std::size_t hidden = 0;                    // of other ranks, processes and threads
  std::size_t deeper = 0;                    // nested too deep to be shown
  std::string track;                         // "rank 0", or "" where there is one track only
};

// The lanes of one track (lowest rank; there the process and thread of the earliest region), which the page names;
// other tracks overlap it in time and would hide it. Neighbours of one depth that are narrower than `least_ns` are
// merged with what follows them within it. `regions` by begin, as the store gives them. O(regions).
[[nodiscard]] Lanes make_lanes(const std::vector<Region>& regions, std::int64_t least_ns);

// The lanes of each rank of a node, by rank, of the first `most`; regions of the others count as hidden in the last.
// Without ranks as make_lanes.
[[nodiscard]] std::vector<Lanes> make_tracks(const std::vector<Region>& regions, std::int64_t least_ns,
                                             std::size_t most);

}  // namespace ergometer
