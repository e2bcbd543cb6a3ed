// How far a study is: counts, energy, and an estimate of the time that is left. Pure; used by status, plan and the line
// that a running study shows.
#pragma once

#include <optional>
#include <string>

#include "study/study_journal.hpp"

namespace ergometer {

struct StudyProgress {
  std::size_t planned = 0;  // runs, without those that are not needed
  std::size_t valid = 0, invalid = 0, failed = 0, running = 0, submitted = 0, left = 0;
  double spent_s = 0;                 // of the runs that have ended
  std::optional<double> energy_j;     // measured; without it modelled
  bool energy_modelled = false;
  std::optional<double> left_s;       // mean of each cell's runs, of all runs for cells that have none yet
};
[[nodiscard]] StudyProgress progress_of(const StudyFile& file, const Plan& plan, const StudyState& state);

// The study's results as a table.
[[nodiscard]] StudyTable table_of(const StudyFile& file, const Plan& plan, const StudyState& state);

}  // namespace ergometer
