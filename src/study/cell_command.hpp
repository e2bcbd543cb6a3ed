// The command and the environment of a cell: the study's template with the cell's levels and the file's parameters put
// in. Used by the engine, and by StudyFile for its checks.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "study/study_file.hpp"

namespace ergometer {

// Words as a shell splits them: blanks between, quotes around, a backslash before. No other character means anything.
// Error: a quote that never closes.
[[nodiscard]] Result<std::vector<std::string>> split_words(std::string_view text);

// Every {NAME} that the command can meet, also through parameters.
[[nodiscard]] std::set<std::string> names_in_command(const StudyFile& file);
// What is wrong with the first {NAME} that nothing gives a value.
[[nodiscard]] std::optional<Error> unknown_placeholder(const StudyFile& file);

struct CellCommand {
  std::vector<std::string> words;
  std::map<std::string, std::string> environment;
  bool ranks_named = false;  // the command is told the number of ranks itself
  int ranks = 1, nodes = 1;
  std::string constraint;    // of an sbatch job
};

// `levels`: an index for each factor. Errors: a parameter that contains itself.
[[nodiscard]] Result<CellCommand> command_of(const StudyFile& file, const std::vector<std::size_t>& levels);

// "power_limit 200W, batch 16"; "the one cell" without factors.
[[nodiscard]] std::string cell_text(const StudyFile& file, const std::vector<std::size_t>& levels);

}  // namespace ergometer
