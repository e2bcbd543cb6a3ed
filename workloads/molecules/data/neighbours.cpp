#include "molecules/data/neighbours.hpp"

#include <algorithm>

namespace ergometer::workload::molecules {

void append_edges(const Molecule& molecule, float cutoff, std::vector<Edge>& edges) {
  const auto atoms = static_cast<std::int32_t>(molecule.atoms());
  const float limit = cutoff * cutoff;
  const float* positions = molecule.positions.data();
  for (std::int32_t target = 0; target < atoms; ++target) {
    const float* to = positions + 3 * target;
    int found = 0;
    for (std::int32_t source = 0; source < atoms && found < kMostNeighbours; ++source) {
      if (source == target) continue;
      const float* from = positions + 3 * source;
      const float x = from[0] - to[0];
      const float y = from[1] - to[1];
      const float z = from[2] - to[2];
      if (x * x + y * y + z * z < limit) {
        edges.push_back({source, target});
        ++found;
      }
    }
  }
}

MoleculeSizes measure(const Molecule& molecule, float cutoff) {
  std::vector<Edge> edges;
  append_edges(molecule, cutoff, edges);
  const auto atoms = static_cast<std::size_t>(molecule.atoms());
  std::vector<std::int64_t> in(atoms, 0);
  std::vector<std::int64_t> out(atoms, 0);
  std::vector<bool> linked(atoms * atoms, false);  // [source, target]
  for (const Edge& edge : edges) {
    ++in[static_cast<std::size_t>(edge.target)];
    ++out[static_cast<std::size_t>(edge.source)];
    linked[static_cast<std::size_t>(edge.source) * atoms + static_cast<std::size_t>(edge.target)] = true;
  }
  MoleculeSizes sizes;
  sizes.atoms = molecule.atoms();
  sizes.edges = static_cast<std::int64_t>(edges.size());
  for (const Edge& edge : edges) {  // j to i: all edges into j but that from i
    const auto i = static_cast<std::size_t>(edge.target);
    const auto j = static_cast<std::size_t>(edge.source);
    sizes.triplets += in[j] - (linked[i * atoms + j] ? 1 : 0);
  }
  for (std::size_t atom = 0; atom < atoms; ++atom) {
    sizes.neighbours = std::max({sizes.neighbours, in[atom], out[atom]});
  }
  return sizes;
}

}  // namespace ergometer::workload::molecules
