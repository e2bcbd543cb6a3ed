#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <ostream>
#include <system_error>

#include "core/latency.hpp"
#include "core/runtime.hpp"
#include "core/text.hpp"
#include "ergometer/region.hpp"
#include "load_lstm/checkpoint.hpp"
#include "load_lstm/load_lstm.hpp"
#include "load_lstm/network.hpp"

namespace ergometer::workload::load_lstm {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Forecasts as CSV: a row a window, in the unit of the data: city, first hour of the forecast, its 168 hours.
class ForecastFile {
 public:
  static Result<ForecastFile> open(const std::string& path) {
    ForecastFile file;
    file.path_ = path;
    if (path.empty()) return file;
    errno = 0;
    file.stream_.open(path, std::ios::binary | std::ios::trunc);
    if (!file.stream_) {
      return Error{Fault::data, fmt::format("{}: {}", path, std::generic_category().message(errno)), {}};
    }
    file.stream_ << "City,Time [s]";
    for (std::int64_t hour = 1; hour <= kForecastHours; ++hour) file.stream_ << fmt::format(",Hour {}", hour);
    file.stream_ << '\n';
    return file;
  }

  void add(const WindowSet& set, std::int64_t first, const torch::Tensor& forecasts) {
    if (path_.empty()) return;
    fmt::memory_buffer text;
    const float* value = forecasts.data_ptr<float>();
    for (std::int64_t i = 0; i < forecasts.size(0); ++i) {
      const Window& window = set.windows[static_cast<std::size_t>(first + i)];
      const Scale& scale = set.scale(window);
      const std::int64_t hour = set.runs[window.run].first_hour + window.offset + kInputHours;
      fmt::format_to(std::back_inserter(text), "{},{}", quoted(scale.city), format_time(hour * 3600));
      for (std::int64_t k = 0; k < kForecastHours; ++k) {
        const double load = scale.minimum + static_cast<double>(*value++) * (scale.maximum - scale.minimum);
        fmt::format_to(std::back_inserter(text), ",{:.6g}", load);
      }
      text.push_back('\n');
    }
    stream_.write(text.data(), static_cast<std::streamsize>(text.size()));
  }

  Result<Done> close() {
    if (path_.empty()) return Done{};
    stream_.close();
    if (!stream_) return Error{Fault::data, fmt::format("{}: could not be written (disk full?)", path_), {}};
    return Done{};
  }

 private:
  static std::string quoted(const std::string& city) {
    if (city.find_first_of(",\"") == std::string::npos) return city;
    std::string text = "\"";
    for (const char letter : city) text += letter == '"' ? std::string("\"\"") : std::string(1, letter);
    return text + '"';
  }

  std::string path_;
  std::ofstream stream_;
};

Result<WindowSet> read_windows(const InferOptions& options, const std::vector<Scale>& scales, Console console) {
  const auto data = read_load(options.data + "/valid.csv", options.strict);
  if (!data) return data.error();
  auto set = make_windows(*data, scales);
  if (!set) return set;
  for (const std::string& note : data->notes) console.notes << "note: " << note << '\n';
  if (set->left_out > 0) {
    console.notes << fmt::format("note: {}: {} windows that touch a missing hour are left out, {} remain\n", data->file,
                                 set->left_out, set->size());
  }
  return set;
}

double squared_error(const torch::Tensor& forecasts, const WindowSet& set, std::int64_t first) {
  const float* forecast = forecasts.data_ptr<float>();
  double sum = 0;
  for (std::int64_t i = 0; i < forecasts.size(0); ++i) {
    const float* target = set.values(set.windows[static_cast<std::size_t>(first + i)]) + kInputHours;
    for (std::int64_t hour = 0; hour < kForecastHours; ++hour) {
      const double difference = static_cast<double>(*forecast++) - target[hour];
      sum += difference * difference;
    }
  }
  return sum;
}

Result<InferReport> run(const InferOptions& options, Console console) {
  const auto device = prepare(options.runtime);
  if (!device) return device.error();
  ScopedRegion data_region("data");
  auto checkpoint = load_checkpoint(options.checkpoint);
  if (!checkpoint) return checkpoint.error();
  const auto set = read_windows(options, checkpoint->scales, console);
  if (!set) return set.error();
  auto file = ForecastFile::open(options.output);
  if (!file) return file.error();
  data_region.end();

  Network network = checkpoint->network;
  network->to(*device);
  network->eval();
  const torch::NoGradGuard no_gradient;
  InferReport report{set->size(), baselines(*set)};
  std::vector<double> latencies;
  const auto start = Clock::now();
  ScopedRegion infer_region("infer");
  for (std::int64_t first = 0; first < set->size(); first += options.batch) {
    const std::int64_t count = std::min(options.batch, set->size() - first);
    ScopedRegion region("batch");
    const auto begin = Clock::now();
    const Batch samples = make_batch(*set, {}, first, count, *device);
    const torch::Tensor forecasts = network->forward(samples.input).to(torch::kCPU).contiguous();
    latencies.push_back(seconds_since(begin));
    region.set("samples", static_cast<double>(count));
    region.end();
    report.losses.model += squared_error(forecasts, *set, first);
    file->add(*set, first, forecasts);
  }
  if (auto closed = file->close(); !closed) return closed.error();
  infer_region.set("samples", static_cast<double>(report.windows));
  infer_region.end();
  const double seconds = seconds_since(start);
  report.losses.model /= static_cast<double>(report.windows * kForecastHours);
  console.out << fmt::format(
      "load_lstm on {}: {} forecasts in {:.1f} s, {:.0f} forecasts/s; batch of {}: {}\n"
      "loss {:.5f} (mean predictor {:.5f}, last week {:.5f})\n",
      describe(*device), report.windows, seconds, static_cast<double>(report.windows) / seconds, options.batch,
      describe_latency(latencies), report.losses.model, report.losses.mean_predictor, report.losses.last_week);
  if (!options.output.empty()) console.out << fmt::format("forecasts: {}\n", options.output);
  return report;
}

}  // namespace

Result<InferReport> infer(const InferOptions& options, Console console) {
  try {
    return run(options, console);
  } catch (const c10::Error& error) {
    return Error{Fault::data, fmt::format("LibTorch: {}", brief(error)), {}};
  }
}

}  // namespace ergometer::workload::load_lstm
