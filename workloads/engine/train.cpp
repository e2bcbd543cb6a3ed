#include "engine/train.hpp"

#include <fmt/format.h>

#include <ostream>

#include "core/text.hpp"
#include "engine/session.hpp"
#include "engine/trainer.hpp"
#include "ergometer/region.hpp"

namespace ergometer::workload {
namespace {

constexpr double kToldWait = 0.02;  // share of an epoch that waited for data, from which on it is told

Result<TrainData> open_data(const Workload& workload, const TrainOptions& options, const Rank& rank,
                            NotePrinter& notes) {
  TrainData data;
  DataOptions of_data = options.data;
  of_data.graphs = options.graphs;
  auto opened = workload.open_data(of_data, Split::train);
  if (!opened) return opened.error();
  data.train = std::move(*opened);
  notes.print(*data.train);
  if (steps_of_epoch(data.train->size(), of_data.batch, rank.size) == 0) {
    return Error{
        Fault::data,
        fmt::format("{}: {} {} are less than one batch of {}{}", of_data.folder, data.train->size(), workload.unit,
                    of_data.batch, rank.size > 1 ? fmt::format(" for each of {} ranks", rank.size) : std::string()),
        "give more data, or a smaller --batch"};
  }
  if (!options.validate) return data;
  of_data.state = data.train->state();
  opened = workload.open_data(of_data, Split::validation);
  if (!opened) return opened.error();
  data.validation = std::move(*opened);
  notes.print(*data.validation);
  const std::int64_t all = data.validation->size();
  data.validation_samples = evenly_spaced(all, options.validate_samples.value_or(all));
  data.baselines = data.validation->baselines(data.validation_samples);
  return data;
}

std::string percent(const std::optional<double>& accuracy) {
  return accuracy ? fmt::format(", accuracy {:.2f} %", *accuracy * 100) : std::string();
}

void print_epoch(std::int64_t number, std::int64_t epochs, const EpochReport& report, const TrainData& data,
                 Console console) {
  std::string line =
      fmt::format("epoch {}/{}: train loss {:.5f}{}", number, epochs, report.loss, percent(report.accuracy));
  if (report.validation_loss) {
    line += fmt::format(", validation loss {:.5f}{}", *report.validation_loss, percent(report.validation_accuracy));
    line += describe_baselines(data.baselines);
  }
  if (report.tokens > 0) {
    const double tokens = static_cast<double>(report.tokens) / static_cast<double>(report.samples);
    line += fmt::format(", {} tokens/s", short_number(tokens * report.samples_per_second));
  }
  line += fmt::format(", {} samples/s", short_number(report.samples_per_second));
  if (report.data_wait_share > kToldWait)
    line += fmt::format(" ({:.0f} % waiting for data)", report.data_wait_share * 100);
  console.out << line << fmt::format(", {} s\n", short_number(report.seconds)) << std::flush;
  if (report.skipped > 0) {
    console.notes << fmt::format("note: epoch {}: {} samples could not be read and do not count\n", number,
                                 report.skipped);
  }
}

void print_start(const Workload& workload, const TrainOptions& options, const TrainData& data, std::int64_t steps,
                 const torch::Device& device, const Rank& rank, Console console) {
  const std::string ranks = rank.size > 1 ? fmt::format(", {} ranks ({})", rank.size, rank.launcher) : std::string();
  const std::string validation =
      data.validation ? fmt::format(", {} for validation", data.validation_samples.size()) : std::string();
  console.out << fmt::format("{} on {}{}: {} {}{}, {} steps of {} an epoch\n", workload.name, describe(options, device),
                             ranks, data.train->size(), workload.unit, validation, steps, options.data.batch)
              << std::flush;
}

Result<TrainReport> run(const Workload& workload, const TrainOptions& options, const Rank& rank, Console console) {
  const auto device = open_device(options);
  if (!device) return device.error();
  const auto group = Group::join(rank, *device);
  if (!group) return group.error();
  const bool saves = !options.checkpoint.empty() && rank.rank == 0;
  if (saves) {
    if (auto writable = check_writable(options.checkpoint); !writable) return writable.error();
  }
  std::optional<Checkpoint> former;
  if (!options.resume.empty()) {
    auto loaded = load_checkpoint(options.resume, workload.name);
    if (!loaded) return loaded.error();
    former = std::move(*loaded);
  }
  NotePrinter notes(console);
  ScopedRegion data_region("data");
  const auto data = open_data(workload, options, rank, notes);
  if (!data) return data.error();
  data_region.end();

  torch::manual_seed(options.data.seed);
  auto task = workload.make_task(options.data);
  place(task->network(), workload, *device);
  Trainer trainer(workload, options, *data, std::move(task), **group, *device, console);
  if (former) {
    if (auto resumed = trainer.resume(*former); !resumed) return resumed.error();
  }
  if (auto joined = trainer.join_ranks(); !joined) return joined.error();
  print_start(workload, options, *data, trainer.steps(), *device, rank, console);

  TrainReport report{data->baselines, {}};
  ScopedRegion train_region("train");
  if (auto done = trainer.warm_up(); !done) return done.error();
  for (std::int64_t number = former ? former->epoch + 1 : 1; number <= options.epochs; ++number) {
    const auto epoch = trainer.epoch(number);
    if (!epoch) return epoch.error();
    print_epoch(number, options.epochs, *epoch, *data, console);
    notes.print(*data->train);
    if (data->validation) notes.print(*data->validation);
    report.epochs.push_back(*epoch);
    if (saves) {
      if (auto saved = save_checkpoint(options.checkpoint, trainer.checkpoint(number)); !saved) return saved.error();
    }
  }
  return report;
}

}  // namespace

Result<TrainReport> train(const Workload& workload, const TrainOptions& options, const Rank& rank, Console console) {
  std::ostream nowhere(nullptr);
  try {
    return run(workload, options, rank, rank.rank == 0 ? console : Console{nowhere, nowhere});
  } catch (const std::exception& exception) {
    return describe_exception(exception, options);
  }
}

}  // namespace ergometer::workload
