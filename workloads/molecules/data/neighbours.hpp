// Which atoms of a molecule see each other: the radius graph of PyTorch Geometric 2.8, and how many pairs of its edges
// DimeNet counts. Used to fill batches and to choose their static shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "molecules/data/molecule.hpp"

namespace ergometer::workload::molecules {

// An atom has at most so many neighbours: the first by index, as torch_cluster's CUDA kernel takes them. Molecules of
// QM9 have 29 atoms at most, so that it never binds there.
inline constexpr int kMostNeighbours = 32;

struct Edge {
  std::int32_t source = 0;
  std::int32_t target = 0;
  bool operator==(const Edge& other) const { return source == other.source && target == other.target; }
};

// Edges between different atoms nearer than `cutoff` (angstrom), by target, then by source, both ascending.
void append_edges(const Molecule& molecule, float cutoff, std::vector<Edge>& edges);

struct Sizes {
  std::int64_t atoms = 0;
  std::int64_t edges = 0;
  std::int64_t triplets = 0;  // pairs of edges k to j and j to i with k other than i
  Sizes& operator+=(const Sizes& other) {
    atoms += other.atoms;
    edges += other.edges;
    triplets += other.triplets;
    return *this;
  }
};

struct MoleculeSizes : Sizes {
  std::int64_t neighbours = 0;  // most edges into, or out of, one atom
};

[[nodiscard]] MoleculeSizes measure(const Molecule& molecule, float cutoff);

}  // namespace ergometer::workload::molecules
