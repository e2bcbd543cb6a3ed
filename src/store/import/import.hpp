// Files of other measuring programs become a run or a study (docs/import-export.md). Which program wrote a file is found
// out from its columns. Used by `ergometer import`; everything here is pure but write_imported_run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "model/manifest.hpp"
#include "model/node.hpp"
#include "model/study_table.hpp"
#include "model/trace.hpp"
#include "store/import/foreign_time.hpp"

namespace ergometer::foreign {

// The readings of one node from one file. Times are nanoseconds since 1970, or since some beginning if `relative`.
struct ImportedLog {
  std::string format;  // "nvidia-smi CSV"
  Node node;           // its name is "imported" if the file does not tell it; its sensors are those of `traces`
  std::vector<Trace> traces;
  bool relative = false;
  std::vector<Warning> warnings;
};

using Imported = std::variant<std::vector<ImportedLog>, StudyTable>;

struct ImportOptions {
  DateOrder dates = DateOrder::unknown;
};

// `source` names the file in messages and becomes the name of a study. Errors: corrupt (no header, no row that can be
// used), unsupported (columns of no known program: the message lists them, the hint what is known), invalid_argument
// (several GPUs a time and no column that tells them apart; dates that could be either order).
[[nodiscard]] Result<Imported> import_text(std::string_view text, const std::string& source,
                                           const ImportOptions& options = {});

// The same of a file, which may be Slurm's profile in HDF5 as well. Errors: also those of reading it; unavailable where a
// machine has no HDF5 library.
[[nodiscard]] Result<Imported> import_file(const std::filesystem::path& file, const ImportOptions& options = {});

// Several studies as one, with a factor "file" whose levels are their names. Takes at least one.
[[nodiscard]] StudyTable join_studies(std::vector<std::pair<std::string, StudyTable>> studies);

// A run from logs, which are put on one clock: its zero is a second before the first reading. Nodes of one name are one.
// Errors: of RunWriter; invalid_argument for logs with and without a calendar, or without a reading.
[[nodiscard]] Result<Manifest> write_imported_run(const std::filesystem::path& dir, std::vector<ImportedLog> logs,
                                                  Manifest manifest);

}  // namespace ergometer::foreign
