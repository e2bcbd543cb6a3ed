#include "app/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/processors.hpp"
#include "core/runtime.hpp"
#include "core/text.hpp"

namespace ergometer::workload {
namespace {

// Enough to hide the reading of most data; pictures on a fast GPU want more.
constexpr std::int64_t kWorkers = 2;
// On CUDA: three steps choose algorithms before a recording; a few more let clocks and memory settle.
constexpr std::int64_t kWarmUpSteps = 10;

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

void add_data_options(CLI::App& command, Given& given, RunOptions& options) {
  command.add_option("name", given.name, "the workload, see list")->required();
  command.add_option("--data", options.data.folder, "folder of the data set, or 'synthetic'")->required();
  command.add_option("--batch", given.batch, "samples a step and rank (default: the workload's)")
      ->check(at_least_one());
  command.add_option("--image-size", options.data.image_size, "pixels of a side (default: the workload's)")
      ->check(at_least_one());
  command.add_option("--sequence", options.data.sequence, "tokens of a sequence (default: the workload's)")
      ->check(at_least_one());
  command.add_option("--seed", options.data.seed, "of weights, order, augmentation and dropout")
      ->check(whole())
      ->capture_default_str();
  command.add_flag("--strict", options.data.strict, "what would be left out of the data stops with an error");
  command
      .add_option("--workers", given.workers, "threads that load batches ahead (default: 2 if there are processors)")
      ->check(whole());
}

void add_run_options(CLI::App& command, Given& given, RunOptions& options) {
  command.add_option("--device", options.runtime.device, "where to compute")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command
      .add_option("--threads", options.runtime.threads,
                  "CPU threads (default: OMP_NUM_THREADS, else all usable processors)")
      ->check(at_least_one());
  command.add_option("--precision", given.precision, "fp32, tf32, bf16 or fp16")
      ->check(CLI::IsMember({"fp32", "tf32", "bf16", "fp16"}))
      ->capture_default_str();
  command
      .add_option("--compile", given.compile,
                  "off: operator by operator; graph: recorded once as a CUDA graph (default: graph on CUDA)")
      ->check(CLI::IsMember({"off", "graph"}));
  command.add_option("--warm-up", given.warm_up, "steps before the measured ones (default: 10 on CUDA, else 0)")
      ->check(whole());
  command.add_option("--config", given.config, "file with options, as key = value; the command line wins");
}

// An option given twice, by the file and on the command line: the later one counts.
void take_last(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (!option->get_lnames().empty()) option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
}

}  // namespace

CLI::App* add_train(CLI::App& app, Given& given) {
  CLI::App* train = app.add_subcommand("train", "train a workload's network; prints a line an epoch");
  add_data_options(*train, given, given.train);
  train->add_option("--epochs", given.epochs, "passes over the data (default: the workload's)")->check(at_least_one());
  train->add_option("--steps", given.train.steps, "at most N optimiser steps an epoch")->check(at_least_one());
  train->add_option("--lr", given.learning_rate, "learning rate (default: the workload's)")->check(positive());
  train->add_option("--validate-samples", given.train.validate_samples, "validate on N samples, evenly spaced")
      ->check(at_least_one());
  train->add_flag("--no-validation", given.no_validation, "no validation after the epochs");
  train->add_option("--checkpoint", given.train.checkpoint, "write network and optimiser here after each epoch");
  train->add_option("--resume", given.train.resume, "go on from this checkpoint");
  train->add_option("--ranks", given.ranks, "train with N processes on this machine")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  add_run_options(*train, given, given.train);
  take_last(*train);
  return train;
}

CLI::App* add_infer(CLI::App& app, Given& given) {
  CLI::App* infer = app.add_subcommand("infer", "run a network over the validation data");
  add_data_options(*infer, given, given.infer);
  infer->add_option("--steps", given.infer.steps, "at most N batches")->check(at_least_one());
  infer->add_option("--checkpoint", given.infer.checkpoint, "written by train (default: initial weights)");
  infer->add_option("--output", given.infer.output, "write the predictions to this CSV file");
  infer->add_flag("--no-validation", given.no_validation, "no second pass for loss and accuracy");
  add_run_options(*infer, given, given.infer);
  take_last(*infer);
  return infer;
}

void add_data_make(CLI::App& app, Given& given) {
  CLI::App* data = app.add_subcommand("data", "data sets");
  data->require_subcommand(1);
  CLI::App* make = data->add_subcommand("make", "write a synthetic data set, the same for a seed");
  make->add_option("name", given.name, "the workload, see list")->required();
  make->add_option("folder", given.make.folder, "folder to write to; files of the same names are replaced")->required();
  make->add_option("--count", given.make.count, "samples, cities for load_lstm (default: the workload's)")
      ->check(at_least_one());
  make->add_option("--seed", given.make.seed, "of the random numbers")->check(whole())->capture_default_str();
}

Result<Done> complete(RunOptions& options, const Given& given, const Workload& workload, const Rank& rank) {
  const bool cuda = options.runtime.device == "cuda";
  const auto precision = parse_precision(given.precision);
  if (!precision) return precision.error();
  options.precision = *precision;
  options.graphs = given.compile ? *given.compile == "graph" : cuda && rank.size == 1;
  if (options.graphs && rank.size > 1) {
    return Error{Fault::usage, "--compile graph works with one rank", "leave --compile out"};
  }
  options.data.batch = given.batch.value_or(workload.batch);
  options.workers = given.workers.value_or(std::min<std::int64_t>(kWorkers, usable_processors()));
  options.warm_up = given.warm_up.value_or(cuda ? kWarmUpSteps : 0);
  options.validate = !given.no_validation;
  options.runtime.local_rank = rank.local_rank;
  options.runtime.local_ranks = rank.launcher == "--ranks" ? rank.size : 1;
  return Done{};
}

}  // namespace ergometer::workload
