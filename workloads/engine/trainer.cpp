#include "engine/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/pass.hpp"
#include "engine/session.hpp"
#include "ergometer/region.hpp"

namespace ergometer::workload {
namespace {

constexpr double kPi = 3.141592653589793;
constexpr std::uint64_t kDropout = 0x64726F70;  // keeps dropout's numbers apart from those of order and augmentation

OptimiserFacts facts(const Workload& workload, const TrainOptions& options) {
  OptimiserFacts result = workload.optimiser;
  result.learning_rate = options.learning_rate;
  return result;
}

LoaderOptions loader_options(const Workload& workload, const TrainOptions& options, const torch::Device& device) {
  return {options.workers, device, workload.channels_last, options.data.folder == "synthetic"};
}

std::int64_t steps_for(const DataSet& data, const TrainOptions& options, const Rank& rank) {
  const std::int64_t whole = steps_of_epoch(data.size(), options.data.batch, rank.size);
  return options.steps ? std::min(*options.steps, whole) : whole;
}

void mark(ScopedRegion& region, const Totals& own) {
  region.set("samples", static_cast<double>(own.samples()));
  if (own.tokens() > 0) region.set("tokens", static_cast<double>(own.tokens()));
}

void mark(ScopedRegion& region, const char* key, const std::optional<double>& value) {
  if (value) region.set(key, *value);
}

}  // namespace

Trainer::Trainer(const Workload& workload, const TrainOptions& options, const TrainData& data,
                 std::unique_ptr<Task> task, Group& group, const torch::Device& device, Console console)
    : workload_(workload),
      options_(options),
      data_(data),
      task_(std::move(task)),
      group_(group),
      device_(device),
      steps_(steps_for(*data.train, options, group.rank())),
      optimiser_(task_->network().parameters(), facts(workload, options)),
      step_(*task_, optimiser_, group, options.precision, device),
      step_work_([this](const Batch& batch) { return step_(batch); }, options.graphs,
                 [this] { return step_.changes(); }),
      validation_work_(
          [this](const Batch& batch) -> Result<torch::Tensor> {
            const Autocast autocast(options_.precision, device_);
            return pack_scores(task_->loss(batch));
          },
          options.graphs),
      loader_(*data.train, loader_options(workload, options, device)),
      progress_(console.notes, options.progress && group.rank().rank == 0, std::string(workload.unit)) {
  if (data.validation) validation_loader_.emplace(*data.validation, loader_options(workload, options, device));
}

Result<Done> Trainer::join_ranks() {
  std::vector<torch::Tensor> tensors;
  for (const auto& [name, tensor] : named_tensors(task_->network())) tensors.push_back(tensor.detach());
  if (auto sent = group_.broadcast(tensors); !sent) return sent;
  return group_.average_gradients_of(task_->network().parameters());
}

Result<Done> Trainer::warm_up() {
  if (options_.warm_up == 0) return Done{};
  ScopedRegion region("warm-up");
  const Snapshot before(step_.changes());
  const std::int64_t steps = std::min(options_.warm_up, steps_);
  auto plan = plan_epoch(data_.train->size(), options_.data.batch, steps, options_.data.seed, 1, share());
  const auto ignore = [](const Finished&) -> Result<Done> { return Done{}; };
  task_->network().train();
  if (auto done = run_pass(loader_, std::move(plan), step_work_, device_, ignore); !done) return done;
  before.restore();
  if (!data_.validation) return Done{};
  const torch::NoGradGuard no_gradient;
  task_->network().eval();
  auto validation = validation_plan();
  validation.resize(std::min<std::size_t>(validation.size(), 1));
  return run_pass(*validation_loader_, std::move(validation), validation_work_, device_, ignore);
}

// Half a cosine from the first epoch's rate to 0 after the last (Loshchilov and Hutter 2017, without restarts), as
// torch.optim.lr_scheduler.CosineAnnealingLR stepped once an epoch.
double Trainer::learning_rate(std::int64_t number) const {
  if (!workload_.optimiser.cosine) return options_.learning_rate;
  const double done = static_cast<double>(number - 1) / static_cast<double>(options_.epochs);
  return 0.5 * options_.learning_rate * (1 + std::cos(kPi * done));
}

Result<EpochReport> Trainer::epoch(std::int64_t number) {
  ScopedRegion region("epoch", number);
  const auto start = Clock::now();
  EpochReport report;
  report.steps = steps_;
  optimiser_.set_learning_rate(learning_rate(number));
  // Dropout depends on the epoch and the rank alone, so that a resumed training drops the same.
  torch::manual_seed(
      derive_seed(options_.data.seed ^ kDropout, static_cast<std::uint64_t>(number * share().ranks + share().rank)));
  auto totals = run_steps(number);
  if (!totals) return totals.error();
  mark(region, *totals);
  const double seconds = seconds_since(start);
  report.data_wait_share = loader_.waited_s() / seconds;
  region.set("data_wait_s", loader_.waited_s());
  if (auto summed = totals->sum_over(group_); !summed) return summed.error();
  report.samples = totals->samples();
  report.tokens = totals->tokens();
  report.skipped = totals->skipped();
  report.loss = totals->loss().value_or(0);
  report.accuracy = totals->accuracy();
  report.samples_per_second = static_cast<double>(report.samples) / seconds;
  mark(region, "loss", totals->loss());
  mark(region, "accuracy", report.accuracy);
  if (data_.validation) {
    const auto validation = validate();
    if (!validation) return validation.error();
    report.validation_loss = validation->loss();
    report.validation_accuracy = validation->accuracy();
    mark(region, "validation_loss", report.validation_loss);
    mark(region, "validation_accuracy", report.validation_accuracy);
    for (const auto& [name, loss] : data_.baselines) region.set((name + "_loss").c_str(), loss);
  }
  report.seconds = seconds_since(start);
  return report;
}

// On CUDA a step's region lasts from the end of the step before to its own end on the device: the next step is handed
// over before the host waits for this one, so that the device does not idle and each step has its own work's energy.
Result<Totals> Trainer::run_steps(std::int64_t number) {
  Totals totals;
  std::int64_t finished = 0;
  task_->network().train();
  progress_.start(fmt::format("epoch {}/{}", number, options_.epochs), steps_);
  auto plan = plan_epoch(data_.train->size(), options_.data.batch, steps_, options_.data.seed, number, share());
  std::optional<ScopedRegion> region(std::in_place, "step");
  const auto end_step = [&](const Finished& step) -> Result<Done> {
    Totals own;
    own.add(step.batch, step.scores);
    mark(*region, own);
    region->set("loss", step.scores.loss);
    region.reset();
    ++finished;
    if (!std::isfinite(step.scores.loss)) {
      return Error{Fault::data, fmt::format("the loss is no longer finite in epoch {}, step {}", number, finished),
                   "lower --lr"};
    }
    totals.add(step.batch, step.scores);
    if (finished < steps_) region.emplace("step");
    progress_.advance(finished, totals.samples() * share().ranks);
    return Done{};
  };
  auto done = run_pass(loader_, std::move(plan), step_work_, device_, end_step);
  progress_.clear();
  if (!done) return done.error();
  return totals;
}

std::vector<PlannedBatch> Trainer::validation_plan() const {
  return plan_in_order(data_.validation_samples, options_.data.batch, options_.data.seed, share());
}

Result<Totals> Trainer::validate() {
  ScopedRegion region("validation");
  const torch::NoGradGuard no_gradient;
  Totals totals;
  std::int64_t finished = 0;
  task_->network().eval();
  auto plan = validation_plan();
  progress_.start("validation", static_cast<std::int64_t>(plan.size()));
  const auto add = [&](const Finished& batch) -> Result<Done> {
    totals.add(batch.batch, batch.scores);
    progress_.advance(++finished, totals.samples());
    return Done{};
  };
  auto done = run_pass(*validation_loader_, std::move(plan), validation_work_, device_, add);
  progress_.clear();
  if (!done) return done.error();
  // No attribute `samples`: by that key energy per trained sample is computed.
  region.set("validated", static_cast<double>(totals.samples()));
  if (auto summed = totals.sum_over(group_); !summed) return summed.error();
  mark(region, "loss", totals.loss());
  mark(region, "accuracy", totals.accuracy());
  return totals;
}

std::vector<std::pair<std::string, std::string>> Trainer::settings() const {
  std::vector<std::pair<std::string, std::string>> result = {
      {"batch", fmt::to_string(options_.data.batch)},
      {"ranks", fmt::to_string(share().ranks)},
      {"steps of an epoch", fmt::to_string(steps_)},
      {"seed", fmt::to_string(options_.data.seed)},
      {"learning rate", fmt::to_string(options_.learning_rate)},
      {"image size", fmt::to_string(options_.data.image_size)},
      {"sequence", fmt::to_string(options_.data.sequence)},
      {"precision", std::string(name_of(options_.precision))},
  };
  if (workload_.optimiser.cosine) result.emplace_back("epochs", fmt::to_string(options_.epochs));
  return result;
}

Checkpoint Trainer::checkpoint(std::int64_t epoch) const {
  return {std::string(workload_.name),
          epoch,
          data_.train->state(),
          settings(),
          named_tensors(task_->network()),
          optimiser_.state(),
          step_.scaler_state()};
}

Result<Done> Trainer::resume(const Checkpoint& checkpoint) {
  const std::string& path = options_.resume;
  if (checkpoint.epoch >= options_.epochs) {
    return Error{Fault::data, fmt::format("{}: its {} epochs are done already", path, checkpoint.epoch),
                 fmt::format("give --epochs {} or more", checkpoint.epoch + 1)};
  }
  if (checkpoint.state != data_.train->state()) {
    return Error{Fault::data, fmt::format("{}: was trained on other data", path),
                 "--data must be that of the training"};
  }
  for (const auto& [name, value] : settings()) {
    const auto matches = [&, &n = name](const auto& setting) { return setting.first == n; };
    const auto found = std::find_if(checkpoint.settings.begin(), checkpoint.settings.end(), matches);
    if (found != checkpoint.settings.end() && found->second == value) continue;
    const std::string saved = found == checkpoint.settings.end() ? "unknown" : found->second;
    return Error{Fault::data, fmt::format("{}: was trained with {} {}, not {}", path, name, saved, value),
                 "a training goes on with the options it began with"};
  }
  if (auto restored = restore_network(path, checkpoint, task_->network()); !restored) return restored;
  if (auto loaded = optimiser_.load(checkpoint.optimiser); !loaded) {
    return Error{Fault::data, fmt::format("{}: {}", path, loaded.error().message), loaded.error().hint};
  }
  return copy_by_name(checkpoint.scaler, step_.scaler_state());
}

}  // namespace ergometer::workload
