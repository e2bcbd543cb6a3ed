#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <ostream>
#include <random>

#include "core/runtime.hpp"
#include "ergometer/region.hpp"
#include "load_lstm/checkpoint.hpp"
#include "load_lstm/load_lstm.hpp"
#include "load_lstm/network.hpp"

namespace ergometer::workload::load_lstm {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct DataSets {
  WindowSet train;
  WindowSet validation;
};

void print_notes(const LoadData& data, const WindowSet& set, Console console) {
  for (const std::string& note : data.notes) console.notes << "note: " << note << '\n';
  if (set.left_out > 0) {
    console.notes << fmt::format("note: {}: {} windows that touch a missing hour are left out, {} remain\n", data.file,
                                 set.left_out, set.size());
  }
}

Result<DataSets> read_data(const TrainOptions& options, Console console) {
  const auto train = read_load(options.data + "/train.csv", options.strict);
  if (!train) return train.error();
  const auto validation = read_load(options.data + "/valid.csv", options.strict);
  if (!validation) return validation.error();
  const auto scales = training_scales(*train);
  if (!scales) return scales.error();
  auto train_windows = make_windows(*train, *scales);
  if (!train_windows) return train_windows.error();
  auto validation_windows = make_windows(*validation, *scales);
  if (!validation_windows) return validation_windows.error();
  print_notes(*train, *train_windows, console);
  print_notes(*validation, *validation_windows, console);
  if (options.validate_samples) thin_out(*validation_windows, *options.validate_samples);
  if (train_windows->size() < options.batch) {
    return Error{
        Fault::data,
        fmt::format("{}: {} windows are less than one batch of {}", train->file, train_windows->size(), options.batch),
        "give more data, or a smaller --batch"};
  }
  return DataSets{std::move(*train_windows), std::move(*validation_windows)};
}

// Fisher and Yates with a generator whose numbers the standard fixes, so that a seed means the same order everywhere.
void shuffle(std::vector<std::uint32_t>& order, std::mt19937_64& random) {
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
}

// Mean squared error over all windows.
double validate(Network& network, const WindowSet& set, std::int64_t batch, const torch::Device& device) {
  const torch::NoGradGuard no_gradient;
  network->eval();
  double sum = 0;
  for (std::int64_t first = 0; first < set.size(); first += batch) {
    const std::int64_t count = std::min(batch, set.size() - first);
    const Batch samples = make_batch(set, {}, first, count, device);
    const torch::Tensor loss = torch::mse_loss(network->forward(samples.input), samples.target);
    sum += loss.item<double>() * static_cast<double>(count);
  }
  network->train();
  return sum / static_cast<double>(set.size());
}

struct Trainer {
  const TrainOptions& options;
  const DataSets& data;
  torch::Device device;
  Network network;
  torch::optim::Adam optimiser;
  std::mt19937_64 random;
  std::vector<std::uint32_t> order;

  Trainer(const TrainOptions& train_options, const DataSets& data_sets, const torch::Device& where)
      : options(train_options),
        data(data_sets),
        device(where),
        optimiser(network->parameters(), torch::optim::AdamOptions(train_options.learning_rate)),
        random(train_options.seed),
        order(data_sets.train.windows.size()) {
    network->to(device);
    std::iota(order.begin(), order.end(), 0U);
  }

  std::int64_t steps() const {
    const std::int64_t whole = data.train.size() / options.batch;  // the last, partial batch is dropped
    return options.steps ? std::min(*options.steps, whole) : whole;
  }

  double step(std::int64_t first) {
    ScopedRegion region("step");
    const Batch samples = make_batch(data.train, order, first, options.batch, device);
    optimiser.zero_grad();
    const torch::Tensor loss = torch::mse_loss(network->forward(samples.input), samples.target);
    loss.backward();
    optimiser.step();
    const double value = loss.item<double>();  // waits for the device: the step's energy ends with its work
    region.set("samples", static_cast<double>(options.batch));
    region.set("loss", value);
    return value;
  }

  Result<EpochReport> epoch(std::int64_t number, const Losses& reference) {
    ScopedRegion region("epoch", number);
    const auto start = Clock::now();
    EpochReport report;
    report.steps = steps();
    report.samples = report.steps * options.batch;
    shuffle(order, random);
    for (std::int64_t i = 0; i < report.steps; ++i) {
      const double loss = step(i * options.batch);
      if (!std::isfinite(loss)) {
        return Error{Fault::data, fmt::format("the loss is no longer finite in epoch {}, step {}", number, i + 1),
                     "lower --lr"};
      }
      report.train_loss += loss / static_cast<double>(report.steps);
    }
    report.samples_per_second = static_cast<double>(report.samples) / seconds_since(start);
    report.validation = reference;
    {
      ScopedRegion validation("validation");
      report.validation.model = validate(network, data.validation, options.batch, device);
      validation.set("loss", report.validation.model);
      // No attribute `samples`: by that key energy per trained sample is computed.
      validation.set("windows", static_cast<double>(data.validation.size()));
    }
    report.seconds = seconds_since(start);
    region.set("samples", static_cast<double>(report.samples));
    region.set("loss", report.train_loss);
    region.set("validation_loss", report.validation.model);
    region.set("mean_predictor_loss", report.validation.mean_predictor);
    region.set("last_week_loss", report.validation.last_week);
    return report;
  }
};

void print_epoch(std::int64_t number, std::int64_t epochs, const EpochReport& report, Console console) {
  console.out
      << fmt::format(
             "epoch {}/{}: train loss {:.5f}, validation loss {:.5f} (mean predictor {:.5f}, last week {:.5f}), "
             "{:.0f} samples/s, {:.1f} s\n",
             number, epochs, report.train_loss, report.validation.model, report.validation.mean_predictor,
             report.validation.last_week, report.samples_per_second, report.seconds)
      << std::flush;
}

Result<std::vector<EpochReport>> run(const TrainOptions& options, Console console) {
  const auto device = prepare(options.runtime);
  if (!device) return device.error();
  if (!options.checkpoint.empty()) {
    if (auto writable = check_writable(options.checkpoint); !writable) return writable.error();
  }
  ScopedRegion data_region("data");
  const auto data = read_data(options, console);
  if (!data) return data.error();
  const Losses reference = baselines(data->validation);
  data_region.end();

  torch::manual_seed(options.seed);
  Trainer trainer(options, *data, *device);
  console.out
      << fmt::format(
             "load_lstm on {}: {} cities, {} training windows, {} validation windows, {} steps of {} an epoch\n",
             describe(*device), data->train.scales.size(), data->train.size(), data->validation.size(), trainer.steps(),
             options.batch)
      << std::flush;
  std::vector<EpochReport> reports;
  ScopedRegion train_region("train");
  for (std::int64_t number = 1; number <= options.epochs; ++number) {
    const auto report = trainer.epoch(number, reference);
    if (!report) return report.error();
    print_epoch(number, options.epochs, *report, console);
    reports.push_back(*report);
    if (!options.checkpoint.empty()) {
      auto saved = save_checkpoint(options.checkpoint, trainer.network, data->train.scales);
      if (!saved) return saved.error();
    }
  }
  return reports;
}

Result<Done> train_command(const TrainOptions& options, Console console) {
  const auto reports = train(options, console);
  if (!reports) return reports.error();
  return Done{};
}

Result<Done> infer_command(const InferOptions& options, Console console) {
  const auto report = infer(options, console);
  if (!report) return report.error();
  return Done{};
}

}  // namespace

Result<std::vector<EpochReport>> train(const TrainOptions& options, Console console) {
  try {
    return run(options, console);
  } catch (const c10::Error& error) {
    return Error{Fault::data, fmt::format("LibTorch: {}", brief(error)), {}};
  }
}

const Workload kWorkload = {
    "load_lstm",
    "energy forecasting",
    "hourly load of cities (CSV)",
    4 * (kHidden * 1 + kHidden * kHidden + kHidden + kHidden) + kHidden + 1,
    64,
    30,
    1e-3,
    "Caspart et al. 2022, arXiv:2212.01698",
    train_command,
    infer_command,
    make_data,
};

}  // namespace ergometer::workload::load_lstm
