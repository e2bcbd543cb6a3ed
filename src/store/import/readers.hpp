// The importers of single formats, tried in turn by import_text. Each answers nothing where the columns are not its own.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/import/foreign_csv.hpp"
#include "store/import/import.hpp"

namespace ergometer::foreign {

// nvidia-smi --query-gpu, the Supercloud GPU form, and any table of time and power: a log with a row a GPU and time.
[[nodiscard]] bool is_gpu_log(const std::vector<std::string>& header);
[[nodiscard]] Result<std::vector<ImportedLog>> read_gpu_log(ForeignCsv& csv, const std::string& source,
                                                            const ImportOptions& options);

// Slurm's task profile as the Supercloud data set has it: Step, Node, Series, ElapsedTime, EpochTime, ...
[[nodiscard]] bool is_slurm_series(const std::vector<std::string>& header);
[[nodiscard]] Result<std::vector<ImportedLog>> read_slurm_series(ForeignCsv& csv, const std::string& source);

// A column of Slurm's profile series and what becomes of it: value in `unit` = number in the file x factor.
struct SeriesColumn {
  std::string_view name;
  const char* column;
  Quantity quantity;
  const char* unit;
  double factor;
};
[[nodiscard]] std::span<const SeriesColumn> series_columns();
[[nodiscard]] Channel series_channel(const SeriesColumn& column);
// Slurm's profile in HDF5, of a job or of one step on one node. Errors: of read_hdf5_tables; unsupported for HDF5 of
// another program.
[[nodiscard]] Result<std::vector<ImportedLog>> read_slurm_profile(const std::filesystem::path& file);

// Tables with a row a run: Zeus's power traces and window logs, codecarbon's emissions.csv.
[[nodiscard]] bool is_study_csv(const std::vector<std::string>& header);
[[nodiscard]] Result<StudyTable> read_study_csv(ForeignCsv& csv, const std::string& source);

// Rows that a reader could not use, as a warning; nothing for none.
void warn_of_left_out(std::vector<Warning>& warnings, const std::string& source, std::size_t count,
                      std::size_t first_line, const std::string& why);
// Sorts a trace's rows by time and keeps the first of those with the same time. True if anything changed.
bool put_in_order(Trace& trace);

}  // namespace ergometer::foreign
