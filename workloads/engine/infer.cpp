#include "engine/infer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "core/latency.hpp"
#include "core/text.hpp"
#include "engine/batch_work.hpp"
#include "engine/checkpoint.hpp"
#include "engine/pass.hpp"
#include "engine/progress.hpp"
#include "engine/session.hpp"
#include "engine/totals.hpp"
#include "ergometer/region.hpp"
#include "steps/precision.hpp"

namespace ergometer::workload {
namespace {

// Of scores over a vocabulary for each token (2 GB a batch) the host gets the likeliest entries, as a user would.
torch::Tensor to_fetch(const torch::Tensor& predictions) {
  return predictions.dim() == 3 && predictions.size(2) > 1 ? predictions.argmax(2) : predictions;
}

class Inference {
 public:
  Inference(const Workload& workload, const InferOptions& options, const DataSet& data, Task& task,
            const torch::Device& device, Console console)
      : options_(options),
        task_(task),
        device_(device),
        plan_(plan_in_order(evenly_spaced(data.size(), data.size()), options.data.batch, options.data.seed, {})),
        prediction_(
            [this](const Batch& batch) -> Result<torch::Tensor> {
              const Autocast autocast(options_.precision, device_);
              return to_fetch(task_.predict(batch));
            },
            options.graphs),
        loader_(data, {options.workers, device, workload.channels_last, options.data.folder == "synthetic"}),
        progress_(console.notes, options.progress, std::string(workload.unit)) {
    if (options.steps) plan_.resize(std::min(plan_.size(), static_cast<std::size_t>(*options.steps)));
  }

  std::vector<std::int64_t> samples() const {
    std::vector<std::int64_t> all;
    for (const PlannedBatch& batch : plan_) all.insert(all.end(), batch.samples.begin(), batch.samples.end());
    return all;
  }

  Result<Done> warm_up() {
    if (options_.warm_up == 0) return Done{};
    ScopedRegion region("warm-up");
    auto first = plan_;
    first.resize(std::min(first.size(), static_cast<std::size_t>(options_.warm_up)));
    loader_.begin(std::move(first));
    while (true) {
      auto batch = loader_.next();
      if (!batch) return batch.error();
      if (!*batch) return Done{};
      if (auto predicted = predict(**batch); !predicted) return predicted.error();
    }
  }

  Result<Done> run(PredictionWriter* writer, InferReport& report) {
    loader_.begin(plan_);
    progress_.start("infer", static_cast<std::int64_t>(plan_.size()));
    for (const PlannedBatch& planned : plan_) {
      ScopedRegion region("batch");
      auto batch = loader_.next();
      if (!batch) return batch.error();
      const auto begin = Clock::now();
      const auto predictions = predict(**batch);
      if (!predictions) return predictions.error();
      report.latencies.push_back(seconds_since(begin));
      report.samples += (*batch)->samples;
      report.tokens += (*batch)->tokens;
      region.set("samples", static_cast<double>((*batch)->samples));
      if ((*batch)->tokens > 0) region.set("tokens", static_cast<double>((*batch)->tokens));
      region.end();
      progress_.advance(static_cast<std::int64_t>(report.latencies.size()), report.samples);
      if (!writer) continue;
      const auto rows = static_cast<std::int64_t>(planned.samples.size());  // the rest is padding
      if (auto written = writer->write(planned.samples, predictions->narrow(0, 0, rows)); !written) return written;
    }
    progress_.clear();
    return Done{};
  }

  Result<Totals> score() {
    ScopedRegion region("validation");
    Totals totals;
    BatchWork scores(
        [this](const Batch& batch) -> Result<torch::Tensor> {
          const Autocast autocast(options_.precision, device_);
          return pack_scores(task_.loss(batch));
        },
        /*graphs=*/false);
    const auto add = [&](const Finished& batch) -> Result<Done> {
      totals.add(batch.batch, batch.scores);
      return Done{};
    };
    if (auto done = run_pass(loader_, plan_, scores, device_, add); !done) return done.error();
    region.set("validated", static_cast<double>(totals.samples()));
    if (const auto loss = totals.loss()) region.set("loss", *loss);
    if (const auto accuracy = totals.accuracy()) region.set("accuracy", *accuracy);
    return totals;
  }

 private:
  // Predictions on the host.
  Result<torch::Tensor> predict(const Batch& batch) {
    const auto result = prediction_.run(loader_.to_device(batch));
    if (!result) return result;
    return result->to(torch::kFloat32).to(torch::kCPU).contiguous();
  }

  const InferOptions& options_;
  Task& task_;
  torch::Device device_;
  std::vector<PlannedBatch> plan_;
  BatchWork prediction_;
  Loader loader_;
  Progress progress_;
};

void print(const Workload& workload, const InferOptions& options, const InferReport& report, double seconds,
           const torch::Device& device, Console console) {
  const double rate = static_cast<double>(report.samples) / seconds;
  const std::string tokens = report.tokens > 0
                                 ? fmt::format(", {} tokens/s", short_number(static_cast<double>(report.tokens) / seconds))
                                 : std::string();
  console.out << fmt::format("{} on {}: {} {} in {} s, {} {}/s{}; batch of {}: {}\n", workload.name,
                             describe(options, device), report.samples, workload.unit, short_number(seconds), short_number(rate), workload.unit,
                             tokens, options.data.batch, describe_latency(report.latencies));
  if (report.loss) {
    const std::string accuracy =
        report.accuracy ? fmt::format(", accuracy {:.2f} %", *report.accuracy * 100) : std::string();
    console.out << fmt::format("loss {:.5f}{}{}\n", *report.loss, accuracy, describe_baselines(report.baselines));
  }
  if (!options.output.empty()) console.out << fmt::format("predictions: {}\n", options.output);
}

Result<InferReport> run(const Workload& workload, const InferOptions& options, Console console) {
  const auto device = open_device(options);
  if (!device) return device.error();
  if (!options.output.empty() && !workload.write_predictions) {
    return Error{Fault::usage, fmt::format("{} writes no predictions", workload.name), "leave --output out"};
  }
  ScopedRegion data_region("data");
  DataOptions of_data = options.data;
  of_data.graphs = options.graphs;
  torch::manual_seed(of_data.seed);
  const auto task = workload.make_task(of_data);
  if (options.checkpoint.empty()) {
    console.notes << "note: no --checkpoint: the network has its initial weights, its predictions mean nothing\n";
  } else {
    const auto checkpoint = load_checkpoint(options.checkpoint, workload.name);
    if (!checkpoint) return checkpoint.error();
    if (auto done = restore_network(options.checkpoint, *checkpoint, task->network()); !done) return done.error();
    of_data.state = checkpoint->state;
  }
  place(task->network(), workload, *device);
  task->network().eval();
  const auto data = workload.open_data(of_data, Split::validation);
  if (!data) return data.error();
  NotePrinter notes(console);
  notes.print(**data);
  std::unique_ptr<PredictionWriter> writer;
  if (!options.output.empty()) {
    auto opened = workload.write_predictions(options.output, **data);
    if (!opened) return opened.error();
    writer = std::move(*opened);
  }
  data_region.end();

  const torch::NoGradGuard no_gradient;
  Inference inference(workload, options, **data, *task, *device, console);
  InferReport report;
  {
    ScopedRegion region("infer");
    if (auto done = inference.warm_up(); !done) return done.error();
    const auto start = Clock::now();
    if (auto done = inference.run(writer.get(), report); !done) return done.error();
    if (writer) {
      if (auto closed = writer->close(); !closed) return closed.error();
    }
    region.set("samples", static_cast<double>(report.samples));
    if (report.tokens > 0) region.set("tokens", static_cast<double>(report.tokens));
    report.seconds = seconds_since(start);
  }
  if (options.validate) {
    const auto totals = inference.score();
    if (!totals) return totals.error();
    report.loss = totals->loss();
    report.accuracy = totals->accuracy();
    report.baselines = (*data)->baselines(inference.samples());
    if (totals->skipped() > 0) {
      console.notes << fmt::format("note: {} samples could not be read and do not count\n", totals->skipped());
    }
  }
  notes.print(**data);
  print(workload, options, report, report.seconds, *device, console);
  return report;
}

}  // namespace

Result<InferReport> infer(const Workload& workload, const InferOptions& options, Console console) {
  try {
    return run(workload, options, console);
  } catch (const std::exception& exception) {
    return describe_exception(exception, options);
  }
}

}  // namespace ergometer::workload
