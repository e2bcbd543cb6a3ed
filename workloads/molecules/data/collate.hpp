// Molecules put together to one batch of tensors (inputs.hpp), padded or not. Used by the data set.
#pragma once

#include <vector>

#include "core/batch.hpp"
#include "molecules/data/molecule.hpp"
#include "molecules/data/shapes.hpp"

namespace ergometer::workload::molecules {

struct GraphRule {
  float cutoff = 5;       // angstrom
  bool triplets = false;  // whether the network reads them
};

struct Labelled {
  const Molecule* molecule = nullptr;
  float energy = 0;  // normalised
};

// `shapes` nullptr: exactly the molecules; otherwise padded to the smallest of them and to `rows` molecules.
[[nodiscard]] Batch collate(const std::vector<Labelled>& samples, const GraphRule& rule, const Shapes* shapes,
                            std::int64_t rows);

}  // namespace ergometer::workload::molecules
