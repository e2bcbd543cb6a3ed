// `data make` of the molecule networks: generated molecules as QM9's xyz files. Used by workloads.cpp.
#pragma once

#include "core/workload.hpp"

namespace ergometer::workload::molecules {

// Writes FOLDER/dsgdb9nsd_000001.xyz and so on, 2000 by default; the same bytes for a seed. Positions and energies are
// those of the generator; the other properties are constants of a plausible size, and the lines for SMILES and InChI
// hold the formula alone.
[[nodiscard]] Result<Done> make_data(const MakeDataOptions& options, Console console);

}  // namespace ergometer::workload::molecules
