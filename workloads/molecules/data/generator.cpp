#include "molecules/data/generator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace ergometer::workload::molecules {
namespace {

using Point = std::array<double, 3>;

constexpr std::uint8_t kHydrogen = 1;
constexpr std::uint8_t kCarbon = 6;

struct Kind {
  std::uint8_t element;
  int valence;
  double radius;  // covalent, angstrom (Cordero et al. 2008)
  double share;   // of QM9's atoms other than hydrogen
};
constexpr std::array<Kind, 5> kKinds = {
    {{6, 4, 0.76, 0.714}, {7, 3, 0.71, 0.121}, {8, 2, 0.66, 0.161}, {9, 1, 0.57, 0.004}, {1, 1, 0.31, 0}}};

// Shares of molecules with 9, 8, 7, ... atoms other than hydrogen, after QM9.
constexpr std::array<double, 6> kHeavyShares = {0.83, 0.13, 0.025, 0.008, 0.004, 0.003};
constexpr int kMostHeavy = 9;

// Bond lengths by order relative to the single bond.
constexpr std::array<double, 4> kShortening = {1, 1, 0.87, 0.78};

// Directions tried for an atom. These numbers, the shares of orders and the clearance below give molecules with as many
// atoms, neighbours and triplets as QM9's on average.
constexpr int kHydrogenTries = 24;
constexpr int kHeavyTries = 6;
constexpr double kClearance = 2.1;  // angstrom

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double uniform() { return static_cast<double>(scatter_bits(state_++) >> 11) * 0x1p-53; }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(uniform() * static_cast<double>(count)); }

 private:
  std::uint64_t state_;
};

const Kind& kind_of(std::uint8_t element) {
  return *std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& kind) { return kind.element == element; });
}

double distance(const Point& a, const Point& b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

struct Atom {
  const Kind* kind;
  Point at;
  int free;  // valences left
};

class Builder {
 public:
  explicit Builder(std::uint64_t seed) : random_(seed) {}

  std::vector<Atom> run() {
    const int heavy = draw_heavy_count();
    atoms_.push_back({&kind_of(kCarbon), {0, 0, 0}, kind_of(kCarbon).valence});
    while (static_cast<int>(atoms_.size()) < heavy) add_heavy(heavy - static_cast<int>(atoms_.size()) == 1);
    add_hydrogen();
    return atoms_;
  }

 private:
  int draw_heavy_count() {
    double left = random_.uniform();
    int heavy = kMostHeavy;
    for (const double share : kHeavyShares) {
      if (left < share) break;
      left -= share;
      --heavy;
    }
    return heavy;
  }

  const Kind& draw_kind() {
    double left = random_.uniform();
    for (const Kind& kind : kKinds) {
      if (left < kind.share) return kind;
      left -= kind.share;
    }
    return kKinds.front();
  }

  int draw_order() {
    const double number = random_.uniform();
    return number < 0.45 ? 1 : number < 0.8 ? 2 : 3;
  }

  void add_heavy(bool last) {
    int free = 0;
    for (const Atom& atom : atoms_) free += atom.free;
    while (true) {  // ends, since carbon by a single bond always leaves a valence to go on with
      Atom& partner = atoms_[random_.below(atoms_.size())];
      const Kind& kind = draw_kind();
      const int order = std::min({draw_order(), partner.free, kind.valence});
      if (order == 0 || (!last && free + kind.valence - 2 * order < 1)) continue;
      partner.free -= order;
      attach(partner.at, kind, order, kind.valence - order);
      return;
    }
  }

  void add_hydrogen() {
    const std::size_t heavy = atoms_.size();
    for (std::size_t i = 0; i < heavy; ++i) {
      while (atoms_[i].free > 0) {
        --atoms_[i].free;
        attach(atoms_[i].at, kind_of(kHydrogen), 1, 0);
      }
    }
  }

  // At the bond's length from `partner`, in the direction that keeps away from the other atoms (hydrogen), or that
  // stays near the middle without touching any (others: molecules are compact, as rings make them).
  void attach(Point partner, const Kind& kind, int order, int free) {
    const auto at_partner = std::find_if(atoms_.begin(), atoms_.end(), [&](const Atom& a) { return a.at == partner; });
    const double length = (at_partner->kind->radius + kind.radius) * kShortening[static_cast<std::size_t>(order)];
    Point middle = {0, 0, 0};
    for (const Atom& atom : atoms_) {
      for (std::size_t axis = 0; axis < 3; ++axis) middle[axis] += atom.at[axis] / static_cast<double>(atoms_.size());
    }
    Point best = partner;
    double best_score = -1e9;
    const bool hydrogen = kind.element == kHydrogen;
    for (int i = 0; i < (hydrogen ? kHydrogenTries : kHeavyTries); ++i) {
      const Point place = step_from(partner, length);
      double clearance = 1e9;
      for (const Atom& atom : atoms_) {
        if (atom.at != partner) clearance = std::min(clearance, distance(place, atom.at));
      }
      double score = clearance;
      if (!hydrogen && clearance > kClearance) score = 100 - distance(place, middle);
      if (score > best_score) {
        best_score = score;
        best = place;
      }
    }
    atoms_.push_back({&kind, best, free});
  }

  Point step_from(const Point& from, double length) {
    const double z = 2 * random_.uniform() - 1;
    const double angle = 6.283185307179586 * random_.uniform();
    const double r = std::sqrt(1 - z * z);
    return {from[0] + length * r * std::cos(angle), from[1] + length * r * std::sin(angle), from[2] + length * z};
  }

  Random random_;
  std::vector<Atom> atoms_;
};

double morse(const Atom& a, const Atom& b) {
  const double depth = a.kind->element == kHydrogen || b.kind->element == kHydrogen ? 2.9 : 3.3;  // eV
  const double stretch = distance(a.at, b.at) - a.kind->radius - b.kind->radius;
  const double fall = 1 - std::exp(-2.4 * stretch);  // per angstrom
  return depth * (fall * fall - 1);
}

}  // namespace

GeneratedMolecule generate_molecule(std::uint64_t seed, std::int64_t number) {
  // Far apart in the generator's sequence, so that no two molecules share numbers.
  const auto atoms = Builder(scatter_bits(seed ^ scatter_bits(static_cast<std::uint64_t>(number)))).run();
  GeneratedMolecule made;
  made.molecule.number = number;
  for (const Atom& atom : atoms) {
    made.molecule.elements.push_back(atom.kind->element);
    for (const double value : atom.at) made.molecule.positions.push_back(static_cast<float>(value));
    made.molecule.u0 += free_atom_energy(atom.kind->element);
  }
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) made.energy += morse(atoms[i], atoms[j]);
  }
  made.molecule.u0 += made.energy / kElectronvolts;
  return made;
}

}  // namespace ergometer::workload::molecules
