// The loop of a training: what it keeps from epoch to epoch, and how one epoch goes. Used by train.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/workload.hpp"
#include "engine/batch_work.hpp"
#include "engine/checkpoint.hpp"
#include "engine/loader.hpp"
#include "engine/progress.hpp"
#include "engine/totals.hpp"
#include "engine/train.hpp"
#include "engine/train_step.hpp"

namespace ergometer::workload {

struct TrainData {
  std::unique_ptr<DataSet> train;
  std::unique_ptr<DataSet> validation;           // absent without validation
  std::vector<std::int64_t> validation_samples;  // their numbers
  std::vector<std::pair<std::string, double>> baselines;
};

class Trainer {
 public:
  // All but `task` outlive it.
  Trainer(const Workload& workload, const TrainOptions& options, const TrainData& data, std::unique_ptr<Task> task,
          Group& group, const torch::Device& device, Console console);

  // The same network on all ranks, gradients averaged over them. Before the first step.
  Result<Done> join_ranks();
  // Steps whose effect is taken back, so that graphs are recorded, algorithms chosen and memory allocated.
  Result<Done> warm_up();
  Result<EpochReport> epoch(std::int64_t number);

  // Optimiser steps of an epoch.
  std::int64_t steps() const { return steps_; }
  Checkpoint checkpoint(std::int64_t epoch) const;
  // Goes on from a checkpoint of the same settings; an error names what differs.
  Result<Done> resume(const Checkpoint& checkpoint);

 private:
  Share share() const { return {group_.rank().rank, group_.rank().size}; }
  std::vector<std::pair<std::string, std::string>> settings() const;
  double learning_rate(std::int64_t number) const;
  std::vector<PlannedBatch> validation_plan() const;
  Result<Totals> run_steps(std::int64_t number);
  Result<Totals> validate();

  const Workload& workload_;
  const TrainOptions& options_;
  const TrainData& data_;
  std::unique_ptr<Task> task_;
  Group& group_;
  torch::Device device_;
  std::int64_t steps_;
  Optimiser optimiser_;
  TrainStep step_;
  BatchWork step_work_;
  BatchWork validation_work_;
  Loader loader_;
  std::optional<Loader> validation_loader_;
  Progress progress_;
};

}  // namespace ergometer::workload
