// The part of a study that a question is about: the valid runs at fixed levels of some factors, and the repeated values
// of a metric in each cell. Used by effects, scaling, decisions and the tables of protocol 2.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/statistics.hpp"
#include "base/result.hpp"
#include "model/study_table.hpp"

namespace ergometer {

// Factor -> level, both as the study writes them; factors that are not named stay free.
using LevelsByFactor = std::map<std::string, std::string>;

[[nodiscard]] std::optional<std::size_t> factor_index(const StudyTable& table, std::string_view name);
// Errors (invalid_argument) name the factor, level or metric that the study does not have, and the nearest it has.
[[nodiscard]] Result<std::vector<std::size_t>> cells_at(const StudyTable& table, const LevelsByFactor& fixed);
// The same study with these cells and their runs alone; cells are numbered anew, factors and levels stay.
[[nodiscard]] StudyTable table_at(StudyTable table, const std::vector<std::size_t>& cells);
[[nodiscard]] Result<const StudyMetric*> metric_of(const StudyTable& table, std::string_view name);

// Values of `metric` in the valid runs of one cell, in the order of the runs.
[[nodiscard]] std::vector<double> values_in(const StudyTable& table, std::size_t cell, const std::string& metric);
// Their mean and interval. One run alone has its own uncertainty as the interval; unset without a value.
[[nodiscard]] std::optional<Centre> centre_in(const StudyTable& table, std::size_t cell, const std::string& metric);
// Factors with more than one level among `cells`, as indices.
[[nodiscard]] std::vector<std::size_t> varying_factors(const StudyTable& table, const std::vector<std::size_t>& cells);
// "150W, batch_size 256": the cell's levels of these factors; "cell 3" for none.
[[nodiscard]] std::string cell_name(const StudyTable& table, std::size_t cell, const std::vector<std::size_t>& factors);

}  // namespace ergometer
