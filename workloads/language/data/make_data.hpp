// Writes a data folder of made-up text. Used by the workloads' entries.
#pragma once

#include "core/workload.hpp"

namespace ergometer::workload::language {

// FOLDER/wiki.train.raw of options.count paragraphs (default 20,000), FOLDER/wiki.valid.raw of a tenth as many but at
// least 20, in the form of WikiText's raw files, and FOLDER/vocab.txt. The same bytes for a seed; more paragraphs go on
// where fewer end.
[[nodiscard]] Result<Done> make_data(const MakeDataOptions& options, Console console);

}  // namespace ergometer::workload::language
