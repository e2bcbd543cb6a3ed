// ergometer export RUN: a run's summary or its raw samples in a form for other programs.
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "library/load_run.hpp"
#include "report/csv.hpp"
#include "report/json.hpp"
#include "store/run_reader.hpp"

namespace ergometer::cli {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  std::string run, format, output;
  bool samples = false;
};

Result<void> check_format(const std::string& format) {
  static const std::array<std::string, 2> known{"csv", "json"};
  for (const auto& k : known)
    if (format == k) return {};
  const auto nearest = nearest_name(format, known);
  return fail(ErrorCode::invalid_argument, fmt::format("--format cannot be \"{}\"", format),
              nearest.empty() ? "it is one of csv, json" : fmt::format("did you mean \"{}\"?", nearest));
}

// Where the text goes: standard output, or a temporary file that commit() renames over the target.
class Output {
 public:
  static Result<Output> open(const std::string& target) {
    Output out;
    if (target.empty()) return out;
    out.target_ = target;
    out.temporary_ = fmt::format("{}.tmp{}", target, ::getpid());
    out.file_ = std::fopen(out.temporary_.c_str(), "wxe");
    if (!out.file_) return tl::unexpected(errno_error("create", out.temporary_, errno));
    return out;
  }
  Output(Output&& o) noexcept
      : target_(std::move(o.target_)),
        temporary_(std::exchange(o.temporary_, {})),
        file_(std::exchange(o.file_, nullptr)) {}
  Output& operator=(Output&&) = delete;
  ~Output() {
    if (file_) std::fclose(file_);
    if (!temporary_.empty()) std::remove(temporary_.c_str());
  }
  [[nodiscard]] Result<void> write(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), file_ ? file_ : stdout) == text.size()) return {};
    return tl::unexpected(errno_error("write", name(), errno));
  }
  [[nodiscard]] Result<void> commit() {
    if (std::fflush(file_ ? file_ : stdout) != 0) return tl::unexpected(errno_error("write", name(), errno));
    if (!file_) return {};
    const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
    if (!closed) return tl::unexpected(errno_error("write", temporary_, errno));
    if (std::rename(temporary_.c_str(), target_.c_str()) != 0)
      return tl::unexpected(errno_error("write", target_, errno));
    temporary_.clear();
    return {};
  }

 private:
  Output() = default;
  [[nodiscard]] fs::path name() const { return file_ ? fs::path(temporary_) : fs::path("standard output"); }
  std::string target_;
  std::string temporary_;
  std::FILE* file_ = nullptr;
};

// The output must not be a file of the run, by whatever name it is reached.
Result<void> refuse_input(const fs::path& run, const fs::path& output) {
  std::error_code ec;
  for (auto it = fs::recursive_directory_iterator(run, ec); !ec && it != fs::recursive_directory_iterator();
       it.increment(ec)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored)) continue;
    if (auto ok = refuse_same_file(it->path(), output); !ok) return ok;
  }
  return {};
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

// One row a value that is there: long form, since sensors have different columns and times.
std::string sample_rows(const Trace& trace, const std::string& node, std::size_t begin, std::size_t end) {
  std::string out;
  for (std::size_t row = begin; row < end; ++row) {
    for (std::size_t c = 0; c < trace.columns.size(); ++c) {
      const auto value = trace.columns[c][row];
      if (!value) continue;
      append_int(out, trace.t_ns[row]);
      out += ',';
      append_csv_field(out, node);
      out += ',';
      append_csv_field(out, trace.info.name);
      out += ',';
      append_csv_field(out, trace.info.channels[c].domain);
      out += ',';
      append_csv_field(out, trace.info.channels[c].column);
      out += ',';
      append_double(out, *value);
      out += '\n';
    }
  }
  return out;
}

Result<void> export_samples(const ExportOptions& options, Output& out) {
  constexpr std::size_t kRows = 16384;
  auto reader = RunReader::open(options.run);
  if (!reader) return tl::unexpected(reader.error());
  if (auto ok = out.write("t_ns,node,sensor,domain,column,value\n"); !ok) return ok;
  for (const auto& node : reader->nodes()) {
    for (const auto& sensor : reader->sensors(node.name)) {
      const auto trace = reader->samples(node.name, sensor);
      if (!trace) return tl::unexpected(trace.error());
      for (std::size_t row = 0; row < trace->rows(); row += kRows)
        if (auto ok = out.write(sample_rows(*trace, node.name, row, std::min(row + kRows, trace->rows()))); !ok)
          return ok;
    }
  }
  return {};
}

Result<void> export_run(const ExportOptions& options) {
  if (auto ok = check_format(options.format); !ok) return ok;
  if (options.samples && options.format != "csv")
    return fail(ErrorCode::invalid_argument, "--samples goes with --format csv only", "add --format csv");
  if (!options.output.empty())
    if (auto ok = refuse_input(options.run, options.output); !ok) return ok;
  // The run is read before the output is touched.
  std::string text;
  if (!options.samples) {
    keep_freed_memory();
    const auto run = load_run(options.run);
    if (!run) return tl::unexpected(run.error());
    text = options.format == "csv" ? summary_csv(run->summary) : json_of(*run);
  }
  auto out = Output::open(options.output);
  if (!out) return tl::unexpected(out.error());
  if (auto ok = options.samples ? export_samples(options, *out) : out->write(text); !ok) return ok;
  return out->commit();
}

}  // namespace

void add_export(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ExportOptions>();
  auto* command = app.add_subcommand("export", "Write a run's summary or samples for other programs");
  command->add_option("RUN", options->run, "run directory")->required();
  command->add_option("--format", options->format, "csv or json")->required();
  command->add_option("-o,--output", options->output, "file to write (default: standard output)");
  command->add_flag("--samples", options->samples, "every reading of every sensor in place of the summary (csv)");
  command->callback([options, &context] {
    const auto done = export_run(*options);
    context.exit_code = done ? 0 : report_error(done.error());
  });
}

}  // namespace ergometer::cli
