// ergometer compare RUN RUN...: runs against the first of them, with a verdict for each quantity.
#include <fmt/format.h>

#include <memory>

#include "command.hpp"
#include "comparison.hpp"
#include "store/study_table_json.hpp"
#include "terminal.hpp"

namespace ergometer::cli {
namespace {

struct CompareOptions {
  std::vector<std::string> runs;
  bool json = false;
  int width = 0;
};

int compare(const CompareOptions& options) {
  if (options.runs.size() < 2)
    return report_error({ErrorCode::invalid_argument, "compare needs two runs at least", "ergometer compare RUN RUN"});
  keep_freed_memory();
  std::vector<LoadedRun> runs;
  for (const auto& path : options.runs) {
    if (is_study(path))
      return report_error({ErrorCode::invalid_argument, fmt::format("{} is a study", path),
                           "compare takes runs; `ergometer study show` compares a study's cells"});
    auto run = load_run(path);
    if (!run) return report_error(run.error());
    runs.push_back(std::move(*run));
  }
  const auto comparison = compare_runs(options.runs, runs);
  const int width = options.width > 0 ? options.width : table_width();
  fmt::print("{}", options.json ? comparison_json(comparison) : comparison_text(comparison, static_cast<std::size_t>(width)));
  return 0;
}

}  // namespace

void add_compare(CLI::App& app, Context& context) {
  const auto options = std::make_shared<CompareOptions>();
  auto* command = app.add_subcommand("compare", "Compare runs with the first of them");
  command->add_option("RUN", options->runs, "run directories; the first is what the others are compared with")->required();
  command->add_flag("--json", options->json, "print the comparison as JSON");
  command->add_option("--width", options->width, "columns of the table (default: the terminal's)")
      ->check(CLI::Range(kNarrowestTerminal, 1000));
  command->callback([options, &context] { context.exit_code = compare(*options); });
}

}  // namespace ergometer::cli
