// Lines over all nodes and ranks of a run: the regions of one path, whichever rank had them, as the times in which one
// of them at least was open. Each node's energy in these times is asked for once, however many ranks it ran. Used by
// Summariser.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/rows.hpp"
#include "model/clock_map.hpp"
#include "model/region.hpp"

namespace ergometer {

// A time without a break, in the reference's clock, and the nodes whose marks begin and end it.
struct SharedPiece {
  std::int64_t begin, end;
  std::size_t begin_node, end_node;
};

struct SharedLine {
  std::string path, name;
  std::optional<std::int64_t> index;
  std::int64_t count = 1;  // paths in this line; above 1 it is a family, and energies and times are sums over its paths
  int ranks = 0;           // that had it; where ranks are not known, nodes
  bool cut = false;
  std::vector<SharedPiece> pieces;        // by begin; those of one path do not overlap
  std::map<std::string, double> metrics;  // numeric attributes: of work (samples, ...) sums, of others means
  [[nodiscard]] double duration_s() const;
};

// True if lines over all are wanted: the run has several nodes, or several ranks on one.
[[nodiscard]] bool has_several(std::span<const std::vector<Region>* const> nodes);

// One line a path, by begin; where that were more than `most`, one a family. `nodes`: the regions of each node.
[[nodiscard]] std::vector<SharedLine> share_lines(std::span<const std::vector<Region>* const> nodes, std::size_t most);

// Adds to a node's rows what of the lines lies within `whole`, the time over which the node was part of the run.
// `clocks` are those of all nodes, `self` the node's index. Where another node's marks bound a piece, the piece carries
// by how much it may be off.
void add_shared(Rows& rows, std::span<const SharedLine> lines, const Piece& whole, std::size_t self,
                std::span<const ClockMap* const> clocks);

}  // namespace ergometer
