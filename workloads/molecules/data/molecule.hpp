// A molecule of QM9 (or of that form), the units of its energy, and the elements that QM9 knows. Used by the readers,
// the generator and the data set.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ergometer::workload::molecules {

struct Molecule {
  std::int64_t number = 0;             // in QM9, from 1
  std::vector<std::uint8_t> elements;  // atomic numbers
  std::vector<float> positions;        // x, y, z of each atom, angstrom
  double u0 = 0;                       // internal energy at 0 K, hartree

  std::int64_t atoms() const { return static_cast<std::int64_t>(elements.size()); }
};

inline constexpr double kElectronvolts = 27.211386;  // a hartree

// H, C, N, O, F; 0 of any other symbol.
[[nodiscard]] std::uint8_t atomic_number(std::string_view symbol);
[[nodiscard]] std::string_view element_symbol(std::uint8_t atomic_number);

// The energy U0 of the free atom, hartree: QM9's atomref.txt (Ramakrishnan et al. 2014, B3LYP/6-31G(2df,p)).
[[nodiscard]] double free_atom_energy(std::uint8_t atomic_number);

// U0 less that of the free atoms, in eV: what the networks learn. Negative where the molecule is bound.
[[nodiscard]] double atomisation_energy(const Molecule& molecule);

// Whether two atoms are nearer than 0.1 angstrom: damaged data, at which 1 / distance would overflow.
[[nodiscard]] bool atoms_coincide(const Molecule& molecule);

// A bijection of 64-bit numbers that scatters neighbours (splitmix64: Steele, Lea, Flood 2014).
[[nodiscard]] std::uint64_t scatter_bits(std::uint64_t value);

}  // namespace ergometer::workload::molecules
