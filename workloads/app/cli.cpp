#include "app/cli.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <ostream>

#include "core/registry.hpp"
#include "core/text.hpp"

namespace ergometer::workload {
namespace {

int report(const Error& error, Console console) {
  console.notes << "ergometer-workload: " << error.message << '\n';
  if (!error.hint.empty()) console.notes << "hint: " << error.hint << '\n';
  return error.fault == Fault::usage ? 2 : 1;
}

int report(const Result<Done>& result, Console console) { return result ? 0 : report(result.error(), console); }

void print_list(Console console) {
  console.out << fmt::format("{:<12} {:<20} {:<30} {:>11} {:>6}  {}\n", "NAME", "DOMAIN", "DATA SET", "PARAMETERS",
                             "BATCH", "SOURCE");
  for (const Workload& workload : workloads()) {
    console.out << fmt::format("{:<12} {:<20} {:<30} {:>11} {:>6}  {}\n", workload.name, workload.domain,
                               workload.data_set, workload.parameters, workload.batch, workload.source);
  }
}

// The commands' options as given; what is absent takes the workload's default.
struct Given {
  std::string name;
  std::optional<std::int64_t> epochs;
  std::optional<std::int64_t> batch;
  std::optional<double> learning_rate;
  TrainOptions train;
  InferOptions infer;
  MakeDataOptions make;
};

CLI::Validator at_least_one() {
  return CLI::Validator(
      [](std::string& text) {
        const auto number = parse_integer(text);
        return number && *number >= 1 && *number <= 1'000'000'000
                   ? std::string()
                   : fmt::format("'{}' is not a whole number from 1 on", text);
      },
      "N >= 1");
}

CLI::Validator positive() {
  return CLI::Validator(
      [](std::string& text) {
        const auto number = parse_number(text);
        return number && *number > 0 ? std::string() : fmt::format("'{}' is not a number above 0", text);
      },
      "X > 0");
}

CLI::Validator whole() {
  return CLI::Validator(
      [](std::string& text) {
        const auto number = parse_integer(text);
        return number && *number >= 0 ? std::string() : fmt::format("'{}' is not a whole number from 0 on", text);
      },
      "N >= 0");
}

void add_runtime(CLI::App& command, RuntimeOptions& runtime) {
  command.add_option("--device", runtime.device, "where to compute")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command
      .add_option("--threads", runtime.threads, "CPU threads (default: OMP_NUM_THREADS, else all usable processors)")
      ->check(at_least_one());
}

CLI::App* add_train(CLI::App& app, Given& given) {
  CLI::App* train = app.add_subcommand("train", "train a workload's network; prints a line an epoch");
  train->add_option("name", given.name, "the workload, see list")->required();
  train->add_option("--data", given.train.data, "folder of the data set")->required();
  train->add_option("--epochs", given.epochs, "passes over the data (default: the workload's)")->check(at_least_one());
  train->add_option("--steps", given.train.steps, "at most N optimiser steps an epoch")->check(at_least_one());
  train->add_option("--batch", given.batch, "samples a step (default: the workload's)")->check(at_least_one());
  train->add_option("--lr", given.learning_rate, "learning rate (default: the workload's)")->check(positive());
  train->add_option("--seed", given.train.seed, "of the initial weights and the order")
      ->check(whole())
      ->capture_default_str();
  train->add_option("--validate-windows", given.train.validate_samples, "validate on N samples, evenly spaced")
      ->check(at_least_one());
  train->add_option("--checkpoint", given.train.checkpoint, "write the network here after each epoch");
  train->add_flag("--strict", given.train.strict, "missing values are errors, not left out");
  add_runtime(*train, given.train.runtime);
  return train;
}

CLI::App* add_infer(CLI::App& app, Given& given) {
  CLI::App* infer = app.add_subcommand("infer", "run a trained network over the validation data");
  infer->add_option("name", given.name, "the workload, see list")->required();
  infer->add_option("--data", given.infer.data, "folder of the data set")->required();
  infer->add_option("--checkpoint", given.infer.checkpoint, "written by train")->required();
  infer->add_option("--batch", given.batch, "samples a batch (default: the workload's)")->check(at_least_one());
  infer->add_option("--output", given.infer.output, "write the results to this CSV file");
  infer->add_flag("--strict", given.infer.strict, "missing values are errors, not left out");
  add_runtime(*infer, given.infer.runtime);
  return infer;
}

void add_data_make(CLI::App& app, Given& given) {
  CLI::App* data = app.add_subcommand("data", "data sets");
  data->require_subcommand(1);
  CLI::App* make = data->add_subcommand("make", "write a synthetic data set, the same for a seed");
  make->add_option("name", given.name, "the workload, see list")->required();
  make->add_option("folder", given.make.folder, "folder to write to; files of the same names are replaced")->required();
  make->add_option("--cities", given.make.cities, "number of cities")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000}))
      ->capture_default_str();
  make->add_option("--seed", given.make.seed, "of the random numbers")->check(whole())->capture_default_str();
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

}  // namespace

int run_cli(const std::vector<std::string>& arguments, Console console) {
  Given given;
  CLI::App app("Reference workloads for measuring training and inference, on LibTorch", "ergometer-workload");
  app.require_subcommand(1);
  CLI::App* list = app.add_subcommand("list", "the workloads");
  CLI::App* train = add_train(app, given);
  CLI::App* infer = add_infer(app, given);
  add_data_make(app, given);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
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
  const Workload& workload = **found;
  if (train->parsed()) {
    given.train.epochs = given.epochs.value_or(workload.epochs);
    given.train.batch = given.batch.value_or(workload.batch);
    given.train.learning_rate = given.learning_rate.value_or(workload.learning_rate);
    return report(workload.train(given.train, console), console);
  }
  if (infer->parsed()) {
    given.infer.batch = given.batch.value_or(workload.batch);
    return report(workload.infer(given.infer, console), console);
  }
  return report(workload.make_data(given.make, console), console);
}

}  // namespace ergometer::workload
