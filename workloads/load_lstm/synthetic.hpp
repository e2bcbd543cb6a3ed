// Synthetic load in memory: what make_data() writes to files. Used by data.cpp for the folder "synthetic".
#pragma once

#include <cstdint>

#include "core/data_set.hpp"
#include "load_lstm/series.hpp"

namespace ergometer::workload::load_lstm {

// Training: 2015 to 2017; validation: 2018. The same numbers for a seed; more cities do not change the first ones.
[[nodiscard]] LoadData synthetic_load(Split split, std::int64_t cities, std::uint64_t seed);

}  // namespace ergometer::workload::load_lstm
