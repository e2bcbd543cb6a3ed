// ergometer report RUN|STUDY: one self-contained HTML file with figures and their tables.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/file.hpp"
#include "base/number.hpp"
#include "command.hpp"
#include "output_file.hpp"
#include "report_pages.hpp"
#include "store/study_table_json.hpp"

namespace ergometer::cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::string input, output = "report.html";
  PageFactors factors;
};

Result<void> check_factor(const char* option, const std::string& text) {
  if (text.empty()) return {};
  const auto value = parse_double(text);
  if (value && *value >= 0) return {};
  return fail(ErrorCode::invalid_argument, fmt::format("{} cannot be \"{}\"", option, text),
              "give a number, 0 or more, with a point for decimals: 0.30");
}

// A folder in the way, or none, would only be noticed after all the work.
Result<void> check_output(const ReportOptions& options) {
  if (auto ok = check_parent(options.output); !ok) return ok;
  std::error_code ec;
  if (fs::is_directory(options.output, ec))
    return fail(ErrorCode::invalid_argument, fmt::format("{} is a folder", options.output),
                fmt::format("name a file: -o {}", (fs::path(options.output) / "report.html").string()));
  for (auto it = fs::recursive_directory_iterator(options.input, ec); !ec && it != fs::recursive_directory_iterator();
       it.increment(ec)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored) || it->path().extension() == ".html") continue;
    if (auto ok = refuse_same_file(it->path(), options.output); !ok) return ok;
  }
  return {};
}

Result<void> write_report(const ReportOptions& options) {
  if (auto ok = check_factor("--price", options.factors.price); !ok) return ok;
  if (auto ok = check_factor("--carbon", options.factors.carbon); !ok) return ok;
  const PageAssets& assets = page_assets();
  if (!assets.missing.empty())
    return fail(ErrorCode::unavailable, "this program was built without the report's page",
                std::string(assets.missing));
  if (auto ok = check_output(options); !ok) return ok;
  const auto text =
      is_study(options.input) ? study_page(options.input, options.factors) : run_page(options.input, options.factors);
  if (!text) return tl::unexpected(text.error());
  return write_file_atomically(options.output, html_page(text->title, text->fallback, text->json, assets));
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ReportOptions>();
  auto* command = app.add_subcommand("report", "Write a run or a study as one HTML page with figures");
  command->add_option("RUN", options->input, "directory of a run or of a study")->required();
  command->add_option("-o,--output", options->output, "file to write")->capture_default_str();
  command->add_option("--price", options->factors.price, "price of one kWh, for the page's costs");
  command->add_option("--currency", options->factors.currency, "its currency, e.g. EUR");
  command->add_option("--carbon", options->factors.carbon, "g CO2e of one kWh, for the page's emissions");
  command->callback([options, &context] {
    keep_freed_memory();
    const auto done = write_report(*options);
    context.exit_code = done ? 0 : report_error(done.error());
    if (done) fmt::print("{}\n", fs::absolute(options->output).lexically_normal().string());
  });
}

}  // namespace ergometer::cli
