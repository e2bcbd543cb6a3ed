// ergometer show RUN: a run as a table or as JSON. Reads only; derives the summary anew each time.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include "base/text.hpp"
#include "command.hpp"
#include "library/load_run.hpp"
#include "report/json.hpp"
#include "report/text.hpp"
#include "show_power.hpp"
#include "terminal.hpp"

namespace ergometer::cli {
namespace {

struct ShowOptions {
  std::string run, by = "epoch";
  bool json = false, colour = false;
  int width = 0;
};

constexpr std::size_t kMostParts = 60;  // of a sparkline

Result<GroupBy> group_by(const std::string& word) {
  static const std::array<std::string, 4> words{"epoch", "phase", "domain", "rank"};
  for (std::size_t i = 0; i < words.size(); ++i)
    if (word == words[i]) return static_cast<GroupBy>(i);
  const auto nearest = nearest_name(word, words);
  return fail(ErrorCode::invalid_argument, fmt::format("--by cannot be \"{}\"", word),
              nearest.empty() ? "it is one of epoch, phase, domain, rank" : fmt::format("did you mean \"{}\"?", nearest));
}

int show(const ShowOptions& options) {
  const auto by = group_by(options.by);
  if (!by) return report_error(by.error());
  keep_freed_memory();
  const auto run = load_run(options.run);
  if (!run) return report_error(run.error());
  TextOptions text;
  text.by = *by;
  text.width = options.width > 0 ? options.width : table_width();
  text.colour = options.colour;
  // Names and the highest power stand beside the picture.
  const auto room = static_cast<std::size_t>(std::max(0, text.width - 36));
  if (!options.json) text.power = power_lines(options.run, *run, std::min(kMostParts, std::max<std::size_t>(10, room)));
  fmt::print("{}", options.json ? summary_json(run->summary) : render_text(run->manifest, run->summary, text));
  return 0;
}

}  // namespace

void add_show(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ShowOptions>();
  auto* command = app.add_subcommand("show", "Show a run: its energy by domain and by region");
  command->add_option("RUN", options->run, "run directory")->required();
  command->add_option("--by", options->by, "rows of the table: epoch, phase, domain, or rank (each rank's own, with its node's energy)")->capture_default_str();
  command->add_flag("--json", options->json, "print the summary as JSON");
  command->add_option("--width", options->width, "columns of the table (default: the terminal's)")
      ->check(CLI::Range(kNarrowestTerminal, 1000));
  command->add_flag("--colour", options->colour, "colour the headings");
  command->callback([options, &context] { context.exit_code = show(*options); });
}

}  // namespace ergometer::cli
