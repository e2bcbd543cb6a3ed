#include "app/cli.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <ostream>

#include "app/config_file.hpp"
#include "app/options.hpp"
#include "app/registry.hpp"
#include "core/text.hpp"
#include "engine/infer.hpp"
#include "engine/train.hpp"

namespace ergometer::workload {
namespace {

int report(const Error& error, Console console) {
  console.notes << "ergometer-workload: " << error.message << '\n';
  if (!error.hint.empty()) console.notes << "hint: " << error.hint << '\n';
  return error.fault == Fault::usage ? 2 : 1;
}

int report(const Result<Done>& result, Console console) { return result ? 0 : report(result.error(), console); }

// Columns as wide as their widest cell; the numbers are aligned to the right.
void print_list(Console console) {
  using Row = std::array<std::string, 7>;
  std::vector<Row> rows = {{"NAME", "DOMAIN", "PARAMETERS", "BATCH", "INPUT", "DATA SET", "SOURCE"}};
  for (const Workload& workload : workloads()) {
    rows.push_back({std::string(workload.name), std::string(workload.domain), fmt::to_string(workload.parameters),
                    fmt::to_string(workload.batch), std::string(workload.input), std::string(workload.data_set),
                    std::string(workload.source)});
  }
  std::array<std::size_t, 7> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      const bool number = i == 2 || i == 3;
      console.out << (number ? fmt::format("{:>{}}  ", row[i], widths[i]) : fmt::format("{:<{}}  ", row[i], widths[i]));
    }
    console.out << row.back() << '\n';
  }
}

// CLI11's own message, and the nearest known option or command where one was mistyped.
Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::string words;
  for (const CLI::App* part = command; part->get_parent(); part = part->get_parent()) {
    words = part->get_name() + " " + words;
  }
  std::string hint = fmt::format("'ergometer-workload {}--help' shows what it takes", words);
  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty()) return {Fault::usage, error.what(), hint};
  std::vector<std::string> names;
  if (unknown.front().rfind("-", 0) == 0) {
    for (const CLI::Option* option : command->get_options()) {
      if (!option->get_lnames().empty()) names.push_back("--" + option->get_lnames().front());
    }
  } else {
    for (const CLI::App* sub : command->get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(sub->get_name());
    }
  }
  const std::string given = unknown.front().substr(0, unknown.front().find('='));
  if (!names.empty()) hint = fmt::format("did you mean '{}'? {}", nearest(given, names), hint);
  return {Fault::usage, fmt::format("unknown argument '{}'", given), hint};
}

int run_train(const std::vector<std::string>& arguments, Given& given, const Workload& workload, Console console) {
  const auto rank = rank_from_environment();
  if (!rank) return report(rank.error(), console);
  if (given.ranks > 1 && rank->launcher.empty()) {
    const auto code = run_ranks(given.ranks, arguments, console.notes);
    return code ? *code : report(code.error(), console);
  }
  if (given.ranks > 1 && rank->launcher != "--ranks") {
    return report(
        {Fault::usage, fmt::format("--ranks, and {} has started ranks already", rank->launcher), "use one of the two"},
        console);
  }
  TrainOptions& options = given.train;
  options.epochs = given.epochs.value_or(workload.epochs);
  options.learning_rate = given.learning_rate.value_or(workload.optimiser.learning_rate);
  if (auto completed = complete(options, given, workload, *rank); !completed) return report(completed, console);
  const auto trained = train(workload, options, *rank, console);
  return trained ? 0 : report(trained.error(), console);
}

int run_infer(Given& given, const Workload& workload, Console console) {
  const auto rank = rank_from_environment();
  if (!rank) return report(rank.error(), console);
  if (rank->size > 1) {
    return report({Fault::usage, fmt::format("infer runs in one process; {} started {}", rank->launcher, rank->size),
                   "start it once"},
                  console);
  }
  if (auto completed = complete(given.infer, given, workload, *rank); !completed) return report(completed, console);
  const auto inferred = infer(workload, given.infer, console);
  return inferred ? 0 : report(inferred.error(), console);
}

}  // namespace

int run_cli(const std::vector<std::string>& arguments, Console console, bool terminal) {
  Given given;
  given.train.progress = given.infer.progress = terminal;
  CLI::App app("Reference workloads for measuring training and inference, on LibTorch", "ergometer-workload");
  app.require_subcommand(1);
  CLI::App* list = app.add_subcommand("list", "the workloads");
  CLI::App* train_command = add_train(app, given);
  CLI::App* infer_command = add_infer(app, given);
  add_data_make(app, given);
  auto completed = with_config_file(app, arguments);
  if (!completed) return report(completed.error(), console);
  try {
    app.parse(std::vector<std::string>(completed->rbegin(), completed->rend()));
  } catch (const CLI::CallForHelp&) {
    console.out << app.help();
    return 0;
  } catch (const CLI::ParseError& error) {
    return report(usage_error(app, error), console);
  }
  if (list->parsed()) {
    print_list(console);
    return 0;
  }
  const auto found = find_workload(given.name);
  if (!found) return report(found.error(), console);
  if (train_command->parsed()) return run_train(arguments, given, **found, console);
  if (infer_command->parsed()) return run_infer(given, **found, console);
  return report((*found)->make_data(given.make, console), console);
}

}  // namespace ergometer::workload
