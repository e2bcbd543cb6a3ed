// The tables [runs] and [validity] of a study file. Used by study_file.cpp.
#pragma once

#include "study/study_file.hpp"
#include "study/toml_table.hpp"

namespace ergometer {

// What is wrong is a complaint of `table`; a key that is missing leaves its value.
void read_runs(TomlTable& table, RunRules& runs);
void read_validity(TomlTable& table, ValidityRules& rules);

}  // namespace ergometer
