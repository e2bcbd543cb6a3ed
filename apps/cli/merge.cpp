// ergometer merge RUN... -o OUT: runs of nodes that share no storage become one.
#include <fmt/format.h>

#include <memory>

#include "base/text.hpp"
#include "command.hpp"
#include "library/load_run.hpp"
#include "report/nodes_table.hpp"
#include "report/table.hpp"
#include "report/units.hpp"
#include "run_folder.hpp"
#include "store/merge_runs.hpp"

namespace ergometer::cli {
namespace {

namespace fs = std::filesystem;

struct MergeOptions {
  std::vector<fs::path> runs;
  std::string output, name;
};

std::string total_text(const Summary& summary) {
  if (!summary.run.energy_j) return "nothing measured";
  std::string out = energy_text(*summary.run.energy_j);
  if (summary.run.uncertainty_j) out += " \xC2\xB1 " + with_unit(*summary.run.uncertainty_j, "J", 2);
  return out + (summary.run.partial ? ", partial" : "");
}

Result<void> merge(const MergeOptions& options) {
  const std::string name = options.name.empty() ? "merged" : options.name;
  const auto folder = run_folder(options.output, "runs", name);
  if (!folder) return tl::unexpected(folder.error());
  const auto merged = merge_runs(options.runs, folder->path, options.name);
  std::error_code error;
  if (!merged) {
    if (folder->created) fs::remove(folder->path, error);
    return tl::unexpected(merged.error());
  }
  const auto run = load_run(folder->path);
  if (!run) return tl::unexpected(run.error());
  if (auto written = write_summary(folder->path, run->summary); !written) return written;
  for (const auto* warnings : {&merged->warnings, &run->summary.warnings})
    for (const auto& w : *warnings)
      fmt::print(stderr, "ergometer: {}{}\n", printable(w.message), w.remedy.empty() ? "" : "; " + printable(w.remedy));
  const auto nodes = nodes_in_a_line(run->summary);
  fmt::print("{}: {}, nodes: {}\nlook at it: ergometer show {}\n", folder->path.string(), total_text(run->summary),
             nodes.empty() ? "1" : nodes, folder->path.string());
  return {};
}

}  // namespace

void add_merge(CLI::App& app, Context& context) {
  const auto options = std::make_shared<MergeOptions>();
  auto* command = app.add_subcommand("merge", "Join the runs of nodes that share no storage into one run");
  command->add_option("RUN", options->runs, "run directories, one or more of each node")->required();
  command->add_option("-o,--output", options->output, "folder to make (default: runs/NAME-TIME)");
  command->add_option("--name", options->name, "name of the new run (default: the first run's)");
  command->callback([options, &context] {
    const auto done = merge(*options);
    context.exit_code = done ? 0 : report_error(done.error());
  });
}

}  // namespace ergometer::cli
