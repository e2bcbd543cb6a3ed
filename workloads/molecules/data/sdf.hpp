// QM9 in MoleculeNet's form: FILE.sdf with V2000 blocks (title "gdb_N") and FILE.sdf.csv with mol_id and u0 among its
// columns, in any order. Used by qm9.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "molecules/data/molecule.hpp"

namespace ergometer::workload::molecules {

struct Readings {
  std::vector<Molecule> molecules;
  std::int64_t skipped = 0;         // files or blocks with a fault
  std::string first_fault;          // message of the first of them
  std::int64_t unmatched_rows = 0;  // CSV rows without a block
};

// `strict`: the first fault, or row without a block, is an error. A file that ends within a block is an error always.
[[nodiscard]] Result<Readings> read_sdf(const std::string& path, bool strict);

}  // namespace ergometer::workload::molecules
