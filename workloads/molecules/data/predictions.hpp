// `infer --output` of the molecule networks: predicted energies as CSV. Used by workloads.cpp.
#pragma once

#include <memory>
#include <string>

#include "core/workload.hpp"

namespace ergometer::workload::molecules {

// Columns: the molecule's number in QM9, then its energy of atomisation U0 and what was predicted for it, both in eV.
[[nodiscard]] Result<std::unique_ptr<PredictionWriter>> write_predictions(const std::string& path, const DataSet& data);

}  // namespace ergometer::workload::molecules
