// ergometer import FILE...: files of other measuring programs become a run or a study.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/file.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "report/table.hpp"
#include "run_folder.hpp"
#include "store/import/import.hpp"
#include "store/study_table_json.hpp"

namespace ergometer::cli {
namespace {

namespace fs = std::filesystem;

struct ImportOptions {
  std::vector<std::string> files;
  std::string output, name, dates;
};

struct Gathered {
  std::vector<foreign::ImportedLog> logs;
  std::vector<std::pair<std::string, StudyTable>> studies;
};

Result<foreign::DateOrder> date_order(const std::string& word) {
  if (word.empty()) return foreign::DateOrder::unknown;
  if (word == "dmy") return foreign::DateOrder::day_first;
  if (word == "mdy") return foreign::DateOrder::month_first;
  return fail(ErrorCode::invalid_argument, fmt::format("--dates cannot be \"{}\"", word), "it is dmy or mdy");
}

Result<void> gather(const std::string& file, const foreign::ImportOptions& options, Gathered& out) {
  auto imported = foreign::import_file(file, options);
  if (!imported) return tl::unexpected(imported.error());
  if (auto* study = std::get_if<StudyTable>(&*imported)) {
    out.studies.emplace_back(fs::path(file).stem().string(), std::move(*study));
  } else {
    auto& logs = std::get<std::vector<foreign::ImportedLog>>(*imported);
    std::move(logs.begin(), logs.end(), std::back_inserter(out.logs));
  }
  return {};
}

void print_warnings(const std::vector<Warning>& warnings) {
  for (const auto& w : warnings)
    fmt::print(stderr, "ergometer: {}{}\n", printable(w.message), w.remedy.empty() ? "" : "; " + printable(w.remedy));
}

Result<void> write_run(std::vector<foreign::ImportedLog> logs, const fs::path& folder, const ImportOptions& options) {
  std::size_t sensors = 0, rows = 0;
  std::string formats;
  for (const auto& log : logs) {
    sensors += log.traces.size();
    for (const auto& trace : log.traces) rows += trace.rows();
    if (formats.find(log.format) == std::string::npos) formats += (formats.empty() ? "" : ", ") + log.format;
  }
  Manifest manifest;
  manifest.name = options.name;
  manifest.tool_version = ERGOMETER_VERSION;
  manifest.directory = fs::current_path().string();
  const auto written = foreign::write_imported_run(folder, std::move(logs), std::move(manifest));
  if (!written) return tl::unexpected(written.error());
  print_warnings(written->warnings);
  fmt::print("{}: {} readings of {} sensor{} ({})\nlook at it: ergometer show {}\n", folder.string(), rows, sensors,
             sensors == 1 ? "" : "s", formats, folder.string());
  return {};
}

Result<void> write_study(std::vector<std::pair<std::string, StudyTable>> studies, const fs::path& folder,
                         const ImportOptions& options) {
  if (!list_dir(folder).empty())
    return fail(ErrorCode::exists, fmt::format("{} holds something already", folder.string()), "name another folder with -o");
  StudyTable table = foreign::join_studies(std::move(studies));
  if (!options.name.empty()) table.name = options.name;
  if (auto done = write_study_table(folder, table); !done) return done;
  print_warnings(table.warnings);
  fmt::print("{}: a study of {} runs in {} cells\n", folder.string(), table.runs.size(), table.cells.size());
  return {};
}

Result<void> import_files(ImportOptions options) {
  const auto dates = date_order(options.dates);
  if (!dates) return tl::unexpected(dates.error());
  Gathered gathered;
  for (const auto& file : options.files)
    if (auto done = gather(file, {*dates}, gathered); !done) return done;
  if (!gathered.logs.empty() && !gathered.studies.empty())
    return fail(ErrorCode::invalid_argument, "some of the files are logs of one run and some are tables of many runs",
                "import them apart");
  if (options.name.empty()) options.name = fs::path(options.files.front()).stem().string();
  const auto folder = run_folder(options.output, gathered.studies.empty() ? "runs" : "studies", options.name);
  if (!folder) return tl::unexpected(folder.error());
  std::error_code ec;
  if (!gathered.studies.empty()) {
    const bool fresh = fs::create_directories(folder->path, ec) || folder->created;
    auto done = write_study(std::move(gathered.studies), folder->path, options);
    if (!done && fresh) fs::remove(folder->path, ec);
    return done;
  }
  auto done = write_run(std::move(gathered.logs), folder->path, options);
  if (!done && folder->created) fs::remove(folder->path, ec);
  return done;
}

}  // namespace

void add_import(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ImportOptions>();
  auto* command = app.add_subcommand("import", "Make a run or a study of other programs' files");
  command->add_option("FILE", options->files,
                      "nvidia-smi CSV, Supercloud CSV, codecarbon's emissions.csv, Zeus's CSV; several become one")
      ->required();
  command->add_option("-o,--output", options->output, "folder to make (default: runs/NAME-TIME or studies/NAME-TIME)");
  command->add_option("--name", options->name, "name of the run or study (default: the first file's)");
  command->add_option("--dates", options->dates, "order in dates like 1/2/2024: dmy or mdy (default: as the file shows)");
  command->callback([options, &context] {
    const auto done = import_files(*options);
    context.exit_code = done ? 0 : report_error(done.error());
  });
}

}  // namespace ergometer::cli
