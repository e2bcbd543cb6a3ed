// QM9's own files, dsgdb9nsd_NNNNNN.xyz: number of atoms; "gdb N" and 15 properties; an atom a line (symbol, x, y, z,
// charge); frequencies; SMILES; InChI. Used by qm9.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "molecules/data/molecule.hpp"

namespace ergometer::workload::molecules {

// A number as QM9 writes it: also "7.9254*^-6" and "0.". Nothing may be left over; "nan" and "inf" are none.
[[nodiscard]] std::optional<double> parse_qm9_number(std::string_view text);

// `path` is for messages, which name the line. More frequencies than 3n - 6 are no fault: eight files have them.
[[nodiscard]] Result<Molecule> parse_xyz(std::string_view text, const std::string& path);

[[nodiscard]] Result<Molecule> read_xyz(const std::string& path);

}  // namespace ergometer::workload::molecules
