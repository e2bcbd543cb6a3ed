#include "molecules/data/molecule.hpp"

#include <array>

namespace ergometer::workload::molecules {
namespace {

struct Element {
  std::string_view symbol;
  std::uint8_t number;
  double energy;
};

constexpr std::array<Element, 5> kElements = {
    {{"H", 1, -0.500273}, {"C", 6, -37.846772}, {"N", 7, -54.583861}, {"O", 8, -75.064579}, {"F", 9, -99.718730}}};

}  // namespace

std::uint8_t atomic_number(std::string_view symbol) {
  for (const Element& element : kElements) {
    if (element.symbol == symbol) return element.number;
  }
  return 0;
}

std::string_view element_symbol(std::uint8_t atomic_number) {
  for (const Element& element : kElements) {
    if (element.number == atomic_number) return element.symbol;
  }
  return {};
}

double free_atom_energy(std::uint8_t atomic_number) {
  for (const Element& element : kElements) {
    if (element.number == atomic_number) return element.energy;
  }
  return 0;
}

double atomisation_energy(const Molecule& molecule) {
  double energy = molecule.u0;
  for (const std::uint8_t element : molecule.elements) energy -= free_atom_energy(element);
  return energy * kElectronvolts;
}

bool atoms_coincide(const Molecule& molecule) {
  const float* positions = molecule.positions.data();
  for (std::int64_t i = 0; i < molecule.atoms(); ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      float squared = 0;
      for (std::int64_t axis = 0; axis < 3; ++axis) {
        const float difference = positions[3 * i + axis] - positions[3 * j + axis];
        squared += difference * difference;
      }
      if (squared < 0.01F) return true;
    }
  }
  return false;
}

std::uint64_t scatter_bits(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

}  // namespace ergometer::workload::molecules
