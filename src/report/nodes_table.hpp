// A run over several nodes: the nodes with what each of them took. Used by text.cpp.
#pragma once

#include <string>

#include "model/summary.hpp"

namespace ergometer {

// Of so few nodes every device and the account of each node are shown.
[[nodiscard]] bool few_nodes(const Summary& summary);
// "3 nodes, 6 ranks; missing: n4"; "" for a run on one node of which nothing is missing.
[[nodiscard]] std::string nodes_in_a_line(const Summary& summary);
// One row a node, in the order of names; of many nodes those that took most and least. "" for one node.
[[nodiscard]] std::string nodes_table(const Summary& summary, std::size_t width);

}  // namespace ergometer
