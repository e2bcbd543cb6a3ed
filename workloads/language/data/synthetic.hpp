// Random tokens in the shape of BERT's, with a rule that can be learnt. Used by open_data for the folder "synthetic".
#pragma once

#include "language/data/packed_set.hpp"

namespace ergometer::workload::language {

// Tokens come in pairs: the first of a pair is one of 29,520 ordinary token numbers, log-uniform in its rank, so that
// few are frequent as in text; the second is the neighbour in rank. Either tells the other. The same tokens in every
// run; training and validation differ. 16,384 training and 1,024 validation sequences of 512.
[[nodiscard]] TokenRow synthetic_tokens(Split split);

}  // namespace ergometer::workload::language
