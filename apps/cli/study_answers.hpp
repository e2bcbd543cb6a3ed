// Parts of what `study show` prints: the scaling of a study and the tables of protocol 2, and how its numbers are written.
#pragma once

#include <string>

#include "analysis/statistics.hpp"
#include "study_questions.hpp"

namespace ergometer::cli {

[[nodiscard]] std::string study_number(double value, const std::string& unit);
// "12.34 s ± 0.4 %"; without an interval the value alone.
[[nodiscard]] std::string centre_text(const Centre& centre, const std::string& unit);
[[nodiscard]] std::string unit_of_metric(const StudyTable& table, const std::string& metric);
// Columns for tables on standard output.
[[nodiscard]] std::size_t study_width();

// Each prints nothing where the study does not ask that question.
void print_scaling(const StudyTable& table, const MetricPair& metrics);
void print_p2(const StudyTable& table);
// Time and energy at `wanted` (FACTOR=NUMBER) by the laws through the study's points, with a warning outside of their range.
// Errors (invalid_argument) name the factor or number, or why there is no law.
[[nodiscard]] Result<void> print_predictions(const StudyTable& table, const MetricPair& metrics,
                                             const std::vector<std::string>& wanted);

}  // namespace ergometer::cli
