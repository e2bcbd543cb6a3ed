// ergometer compare RUN RUN...: runs against the first of them, with a verdict for each quantity.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/file.hpp"
#include "command.hpp"
#include "comparison.hpp"
#include "output_file.hpp"
#include "store/study_table_json.hpp"
#include "terminal.hpp"

namespace ergometer::cli {
namespace {

struct CompareOptions {
  std::vector<std::string> runs;
  std::string html;
  bool json = false;
  int width = 0;
};

Result<void> write_page(const CompareOptions& options, const RunComparison& comparison) {
  const auto page = comparison_page(comparison);
  return write_file_atomically(options.html, html_page(page.title, page.fallback, page.json, page_assets()));
}

// What would only be noticed after the runs were read.
Result<void> check_html(const CompareOptions& options) {
  if (options.html.empty()) return {};
  if (!page_assets().missing.empty())
    return fail(ErrorCode::unavailable, "this program was built without the report's page",
                std::string(page_assets().missing));
  if (auto ok = check_parent(options.html); !ok) return ok;
  for (const auto& run : options.runs)
    if (auto ok = refuse_input(run, options.html); !ok) return ok;
  return {};
}

int compare(const CompareOptions& options) {
  if (options.runs.size() < 2)
    return report_error({ErrorCode::invalid_argument, "compare needs two runs at least", "ergometer compare RUN RUN"});
  if (auto ok = check_html(options); !ok) return report_error(ok.error());
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
  if (!options.html.empty())
    if (auto written = write_page(options, comparison); !written) return report_error(written.error());
  const int width = options.width > 0 ? options.width : table_width();
  fmt::print("{}", options.json ? comparison_json(comparison) : comparison_text(comparison, static_cast<std::size_t>(width)));
  if (!options.html.empty() && !options.json)
    fmt::print("\n{}\n", std::filesystem::absolute(options.html).lexically_normal().string());
  return 0;
}

}  // namespace

void add_compare(CLI::App& app, Context& context) {
  const auto options = std::make_shared<CompareOptions>();
  auto* command = app.add_subcommand("compare", "Compare runs with the first of them");
  command->add_option("RUN", options->runs, "run directories; the first is what the others are compared with")->required();
  command->add_option("--html", options->html, "also write the comparison as one HTML page")->type_name("FILE");
  command->add_flag("--json", options->json, "print the comparison as JSON");
  command->add_option("--width", options->width, "columns of the table (default: the terminal's)")
      ->check(CLI::Range(kNarrowestTerminal, 1000));
  command->callback([options, &context] { context.exit_code = compare(*options); });
}

}  // namespace ergometer::cli
