// Exports of a study's table. Used by `ergometer export` where it is given a study.
#pragma once

#include <string>

#include "base/result.hpp"
#include "model/study_table.hpp"

namespace ergometer::cli {

// csv: a row a run, factors then metrics, each with its uncertainty. json: table.json. latex: a row a cell with means and
// 95 % intervals. github-benchmark: each cell's metrics that are better low. Error (unsupported): another format.
[[nodiscard]] Result<std::string> export_study(const StudyTable& table, const std::string& format);

}  // namespace ergometer::cli
