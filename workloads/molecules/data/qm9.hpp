// All molecules of a folder of QM9, in whichever of its two forms, less the uncharacterised ones. Used by data_set.cpp.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"
#include "molecules/data/molecule.hpp"

namespace ergometer::workload::molecules {

struct Qm9 {
  std::vector<Molecule> molecules;  // by ascending number, each once
  std::vector<std::string> notes;   // what was left out, and why
};

// Reads FOLDER/*.xyz or FOLDER/xyz/*.xyz (in several threads), or else the one FOLDER/NAME.sdf with NAME.sdf.csv, and
// FOLDER/uncharacterized.txt, whose entries are the molecules' numbers from 1. `strict`: nothing with a fault is
// skipped.
[[nodiscard]] Result<Qm9> read_qm9(const std::string& folder, bool strict);

}  // namespace ergometer::workload::molecules
