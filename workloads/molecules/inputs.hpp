// What a batch of molecules holds: the order of Batch::tensors, agreed between collate.cpp and the networks.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "core/batch.hpp"

namespace ergometer::workload::molecules {

// N atoms, E edges (j to i, sorted by i, then j), T triplets (k to j to i), K slots an atom, B molecules. Where a batch
// is padded, dummy atoms have element 0 and belong to molecule B, padding edges join dummy atoms 1 angstrom apart, and
// padding triplets join padding edges, so that nothing flows between them and the B molecules.
//
// Slots lay out an atom's edges in rows of equal length, so that sums and products over neighbours need neither atomic
// additions nor sorting: edge e into i has row i K + its rank among the edges into i; out of j, row j K + its rank
// among the edges out of j.
struct Inputs {
  torch::Tensor elements;      // int64 [N], atomic numbers
  torch::Tensor positions;     // fp32 [N, 3], angstrom
  torch::Tensor molecule;      // int64 [N], ascending
  torch::Tensor source;        // int64 [E], j
  torch::Tensor target;        // int64 [E], i
  torch::Tensor in_slot;       // int64 [E], below N K
  torch::Tensor out_slot;      // int64 [E], below N K
  torch::Tensor filled;        // fp32 [N, K], 1 where an edge into the atom has that slot, else 0
  torch::Tensor triplet_kj;    // int64 [T], edge k to j; T is 0 where the network uses none
  torch::Tensor triplet_ji;    // int64 [T], edge j to i, ascending
  torch::Tensor triplet_slot;  // int64 [T], out_slot of ji times K plus the rank of kj among the edges into j
  torch::Tensor energy;        // fp32 [B], normalised target; 0 where there is no molecule
  torch::Tensor weight;        // fp32 [B], 1 of a molecule, 0 where there is none

  std::int64_t atoms() const { return elements.size(0); }
  std::int64_t slots() const { return filled.size(1); }
  // B and the molecule of the dummy atoms.
  std::int64_t molecules() const { return energy.size(0) + 1; }

  // Batch::tensors are elements, positions, molecule, edges [4, E] (source, target, in_slot, out_slot), filled,
  // triplets [3, T] (kj, ji, slot), energy, weight.
  static Inputs of(const Batch& batch) {
    const auto& t = batch.tensors;
    return {t[0], t[1], t[2], t[3][0], t[3][1], t[3][2], t[3][3], t[4], t[5][0], t[5][1], t[5][2], t[6], t[7]};
  }
};

}  // namespace ergometer::workload::molecules
