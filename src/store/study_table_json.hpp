// STUDY/table.json: a StudyTable as text (docs/study-table.md). Used by the study engine and imports, which write it, and
// by everything that shows a study.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/study_table.hpp"

namespace ergometer {

// Strict JSON, one run a line. A number that is not finite is left out; bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string study_table_to_json(const StudyTable& table);

// Unknown keys are ignored. Errors (corrupt) name `source`, the key and what was expected: no JSON, another schema or
// version, a value of another kind, an index outside its list, a metric that `metrics` does not list, two of one name.
[[nodiscard]] Result<StudyTable> study_table_from_json(std::string_view text, const std::string& source);

// `study` is the folder; the file in it is replaced as a whole, so that a reader sees the old or the new table.
[[nodiscard]] Result<void> write_study_table(const std::filesystem::path& study, const StudyTable& table);
// `study` is the folder or the file itself. not_found, with what to do, if it has no table.
[[nodiscard]] Result<StudyTable> read_study_table(const std::filesystem::path& study);
// The folder holds a table, or the file is named like one. Says nothing about its content.
[[nodiscard]] bool is_study(const std::filesystem::path& path);

}  // namespace ergometer
