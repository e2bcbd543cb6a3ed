#include "molecules/data/shapes.hpp"

#include <algorithm>

namespace ergometer::workload::molecules {
namespace {

constexpr std::size_t kDraws = 4096;
constexpr double kShares[] = {0.5, 0.9, 0.995};

// Padding edges join dummy atoms in pairs; padding triplets join padding edges.
constexpr std::int64_t kSpareAtoms = 2;
constexpr std::int64_t kSpareEdges = 2;

// Sizes of tensors that matrix products like. Dummy atoms share the padding edges, so that there should be some.
constexpr std::int64_t kAtomStep = 8;
constexpr std::int64_t kEdgeStep = 64;
constexpr std::int64_t kTripletStep = 256;
constexpr std::int64_t kSlotStep = 4;

std::int64_t round_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

Sizes padded(const Sizes& content) {
  return {round_up(content.atoms + kSpareAtoms, kAtomStep), round_up(content.edges + kSpareEdges, kEdgeStep),
          round_up(content.triplets, kTripletStep)};
}

bool holds(const Sizes& shape, const Sizes& content) {
  return shape.atoms >= content.atoms + kSpareAtoms && shape.edges >= content.edges + kSpareEdges &&
         shape.triplets >= content.triplets;
}

std::vector<Sizes> draw_batches(const std::vector<MoleculeSizes>& molecules, std::int64_t batch) {
  std::vector<Sizes> batches(kDraws);
  std::uint64_t draw = 0;
  for (Sizes& sum : batches) {
    for (std::int64_t i = 0; i < batch; ++i) sum += molecules[scatter_bits(draw++) % molecules.size()];
  }
  return batches;
}

std::int64_t quantile(const std::vector<Sizes>& batches, double share, std::int64_t Sizes::*measure) {
  std::vector<std::int64_t> values;
  for (const Sizes& batch : batches) values.push_back(batch.*measure);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

std::size_t Shapes::smallest(const Sizes& content) const {
  std::size_t shape = 0;
  while (shape + 1 < sizes.size() && !holds(sizes[shape], content)) ++shape;
  return shape;
}

Shapes choose_shapes(const std::vector<MoleculeSizes>& molecules, std::int64_t batch) {
  Sizes largest;
  Shapes shapes;
  for (const MoleculeSizes& molecule : molecules) {
    largest.atoms = std::max(largest.atoms, molecule.atoms * batch);
    largest.edges = std::max(largest.edges, molecule.edges * batch);
    largest.triplets = std::max(largest.triplets, molecule.triplets * batch);
    shapes.neighbours = std::max(shapes.neighbours, molecule.neighbours);
  }
  shapes.neighbours = round_up(shapes.neighbours, kSlotStep);
  largest = padded(largest);
  const auto batches = draw_batches(molecules, batch);
  for (const double share : kShares) {
    const Sizes shape = padded({quantile(batches, share, &Sizes::atoms), quantile(batches, share, &Sizes::edges),
                                quantile(batches, share, &Sizes::triplets)});
    const bool grows = shapes.sizes.empty() || shape.atoms > shapes.sizes.back().atoms ||
                       shape.edges > shapes.sizes.back().edges || shape.triplets > shapes.sizes.back().triplets;
    if (grows && !holds(shape, largest)) shapes.sizes.push_back(shape);
  }
  shapes.sizes.push_back(largest);
  return shapes;
}

}  // namespace ergometer::workload::molecules
