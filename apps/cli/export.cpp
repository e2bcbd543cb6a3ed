// ergometer export RUN|STUDY: a run's summary or its raw samples, or a study's table, in a form for other programs.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "export_study.hpp"
#include "export_traces.hpp"
#include "library/load_run.hpp"
#include "output_file.hpp"
#include "report/csv.hpp"
#include "report/github_benchmark.hpp"
#include "report/json.hpp"
#include "report/latex.hpp"
#include "report/openmetrics.hpp"
#include "store/study_table_json.hpp"

namespace ergometer::cli {
namespace {

struct ExportOptions {
  std::string run, format, output, torch_trace;
  bool samples = false;
};

Result<void> check_format(const std::string& format) {
  static const std::array<std::string, 7> known{"csv",        "json",        "latex",           "supercloud",
                                                "perfetto",   "openmetrics", "github-benchmark"};
  for (const auto& k : known)
    if (format == k) return {};
  const auto nearest = nearest_name(format, known);
  return fail(ErrorCode::invalid_argument, fmt::format("--format cannot be \"{}\"", format),
              nearest.empty() ? fmt::format("it is one of {}", fmt::join(known, ", "))
                              : fmt::format("did you mean \"{}\"?", nearest));
}

std::string json_of(const LoadedRun& run) {
  auto out = nlohmann::ordered_json::parse(summary_json(run.summary));
  nlohmann::ordered_json manifest;
  const Manifest& m = run.manifest;
  manifest["name"] = m.name;
  manifest["command"] = m.command;
  manifest["directory"] = m.directory;
  manifest["environment"] = m.environment;
  manifest["tool_version"] = m.tool_version;
  manifest["state"] = m.state;
  manifest["nodes"] = m.nodes;
  manifest["started_unix_ns"] = nullptr;
  if (!m.clocks.empty()) manifest["started_unix_ns"] = to_ns(m.clocks.front().wall);
  out["manifest"] = std::move(manifest);
  return out.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string text_of(const LoadedRun& run, const std::string& format) {
  if (format == "csv") return summary_csv(run.summary);
  if (format == "latex") return summary_latex(run.manifest, run.summary);
  if (format == "openmetrics") return summary_openmetrics(run.manifest, run.summary);
  if (format == "github-benchmark") return summary_github_benchmark(run.manifest, run.summary);
  return json_of(run);
}

// The text of what is small enough to be made before the output is touched; unset for what is streamed.
Result<std::optional<std::string>> whole_text(const ExportOptions& options) {
  if (is_study(options.run)) {
    const auto table = read_study_table(options.run);
    if (!table) return tl::unexpected(table.error());
    auto text = export_study(*table, options.format);
    if (!text) return tl::unexpected(text.error());
    return std::optional(std::move(*text));
  }
  if (options.samples || options.format == "perfetto" || options.format == "supercloud") return std::nullopt;
  keep_freed_memory();
  const auto run = load_run(options.run);
  if (!run) return tl::unexpected(run.error());
  return std::optional(text_of(*run, options.format));
}

Result<void> check_options(const ExportOptions& options) {
  if (auto ok = check_format(options.format); !ok) return ok;
  if (options.samples && options.format != "csv")
    return fail(ErrorCode::invalid_argument, "--samples goes with --format csv only", "add --format csv");
  if (!options.torch_trace.empty() && options.format != "perfetto")
    return fail(ErrorCode::invalid_argument, "--torch-trace goes with --format perfetto only", "add --format perfetto");
  if (options.samples && is_study(options.run))
    return fail(ErrorCode::invalid_argument, fmt::format("{} is a study, which has no samples of its own", options.run),
                "name one of its runs");
  if (options.output.empty()) return {};
  if (!options.torch_trace.empty())
    if (auto ok = refuse_same_file(options.torch_trace, options.output); !ok) return ok;
  return refuse_input(options.run, options.output);
}

Result<void> export_run(const ExportOptions& options) {
  if (auto ok = check_options(options); !ok) return ok;
  const auto text = whole_text(options);
  if (!text) return tl::unexpected(text.error());
  auto out = OutputFile::open(options.output);
  if (!out) return tl::unexpected(out.error());
  Result<void> written;
  if (*text)
    written = out->write(**text);
  else if (options.samples)
    written = export_samples(options.run, *out);
  else if (options.format == "perfetto")
    written = export_perfetto(options.run, options.torch_trace, *out);
  else
    written = export_supercloud(options.run, *out);
  return written ? out->commit() : written;
}

}  // namespace

void add_export(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ExportOptions>();
  auto* command = app.add_subcommand("export", "Write a run or a study for other programs");
  command->add_option("RUN", options->run, "run directory or study")->required();
  command->add_option("--format", options->format,
                      "csv, json, latex, supercloud, perfetto, openmetrics or github-benchmark")
      ->required();
  command->add_option("-o,--output", options->output, "file to write (default: standard output)");
  command->add_flag("--samples", options->samples, "every reading of every sensor in place of the summary (csv)");
  command->add_option("--torch-trace", options->torch_trace,
                      "trace of the PyTorch profiler of the same run, to put the power beside it (perfetto)");
  command->callback([options, &context] {
    const auto done = export_run(*options);
    context.exit_code = done ? 0 : report_error(done.error());
  });
}

}  // namespace ergometer::cli
