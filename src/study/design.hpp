// From a study file to its cells: every combination of levels that the design asks for. Pure; used by the plan.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "model/study_table.hpp"
#include "study/study_file.hpp"

namespace ergometer {

// In the order of the file, the last factor changing fastest. Full: all combinations. One at a time: the base, and for
// each factor its other levels with everything else at the base. Fraction 1/n: those of the full design whose level
// indices, over the factors with a multiple of n levels, sum to a multiple of n: the regular fraction with the defining
// relation I = AB... (D. Montgomery, "Design and Analysis of Experiments", ch. 8). Errors name `source` and line: no cell is left, a
// fraction that the levels do not allow, too many cells.
[[nodiscard]] Result<std::vector<StudyCell>> cells_of(const StudyFile& file, const std::string& source);

}  // namespace ergometer
