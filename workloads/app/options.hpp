// The commands' options. Used by cli.cpp alone.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "core/workload.hpp"
#include "engine/options.hpp"
#include "parallel/rank.hpp"

namespace ergometer::workload {

// The options as given; what is absent takes the workload's or the device's default.
struct Given {
  std::string name;
  std::optional<std::int64_t> epochs;
  std::optional<std::int64_t> batch;
  std::optional<double> learning_rate;
  std::optional<std::int64_t> workers;
  std::optional<std::int64_t> warm_up;
  std::optional<std::string> compile;
  std::string precision = "fp32";
  std::string config;
  bool no_validation = false;
  int ranks = 1;
  TrainOptions train;
  InferOptions infer;
  MakeDataOptions make;
};

CLI::App* add_train(CLI::App& app, Given& given);
CLI::App* add_infer(CLI::App& app, Given& given);
void add_data_make(CLI::App& app, Given& given);

// Fills in the defaults: --compile, --warm-up and --workers depend on the device, --batch on the workload. A usage
// error where options contradict each other.
[[nodiscard]] Result<Done> complete(RunOptions& options, const Given& given, const Workload& workload,
                                    const Rank& rank);

}  // namespace ergometer::workload
