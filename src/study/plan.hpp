// Plan: a study's cells and the order of its runs, fixed before the first and kept in STUDY/plan.json. Used by every
// study command.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/study_table.hpp"
#include "study/study_file.hpp"

namespace ergometer {

struct PlannedRun {
  std::size_t cell = 0;
  int repetition = 0;  // from 0; also the block: every block holds each cell once
};

struct Plan {
  std::uint64_t seed = 0;
  StudyOverrides overrides;
  std::vector<StudyCell> cells;
  std::vector<PlannedRun> runs;  // in the order in which they are to run; a run's number is its place here
  // Of each factor's levels, in its unit, where this machine told what a percentage means; empty: not asked.
  std::vector<std::vector<std::optional<double>>> level_values;
};

// The same file and seed give the same plan everywhere. `seed` is used where the file has none. With `until` the plan
// holds as many repetitions as there may be; the engine leaves out what is not needed.
[[nodiscard]] Result<Plan> make_plan(const StudyFile& file, const StudyOverrides& overrides, std::uint64_t seed,
                                     const std::string& source);
// A seed that nobody chose.
[[nodiscard]] std::uint64_t random_seed();

[[nodiscard]] std::string plan_to_json(const Plan& plan);
// Errors (corrupt) name `source`. The plan must fit the file.
[[nodiscard]] Result<Plan> plan_from_json(std::string_view text, const std::string& source);
[[nodiscard]] Result<void> check_plan(const Plan& plan, const StudyFile& file, const std::string& source);

// "runs/0017".
[[nodiscard]] std::string run_folder_name(std::size_t run);

}  // namespace ergometer
