// Molecules made up after the sizes of QM9's: trees of C, N, O and F with single, double and triple bonds and hydrogen
// on what is left, and an energy that follows from the coordinates. Used by synthetic data and by `data make`.
#pragma once

#include <cstdint>

#include "molecules/data/molecule.hpp"

namespace ergometer::workload::molecules {

struct GeneratedMolecule {
  Molecule molecule;
  double energy = 0;  // of atomisation, eV
};

// The same molecule for the same seed and number, on every machine up to rounding. Its energy of atomisation is a sum
// of Morse potentials of all pairs of atoms (P. M. Morse, 1929) with made-up depths around 3 eV.
[[nodiscard]] GeneratedMolecule generate_molecule(std::uint64_t seed, std::int64_t number);

}  // namespace ergometer::workload::molecules
