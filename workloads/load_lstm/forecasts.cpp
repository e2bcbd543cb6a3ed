#include <fmt/format.h>

#include <iterator>

#include "core/csv_writer.hpp"
#include "core/text.hpp"
#include "load_lstm/data.hpp"
#include "load_lstm/load_lstm.hpp"

namespace ergometer::workload::load_lstm {
namespace {

std::string header() {
  std::string text = "City,Time [s]";
  for (std::int64_t hour = 1; hour <= kForecastHours; ++hour) text += fmt::format(",Hour {}", hour);
  return text;
}

class ForecastFile final : public PredictionWriter {
 public:
  ForecastFile(CsvWriter file, const WindowSet& set) : file_(std::move(file)), set_(set) {}

  Result<Done> write(const std::vector<std::int64_t>& samples, const torch::Tensor& predictions) override {
    fmt::memory_buffer text;
    const torch::Tensor forecasts = predictions.contiguous();
    const float* value = forecasts.data_ptr<float>();
    for (const std::int64_t sample : samples) {
      const Window& window = set_.window(sample);
      const Scale& scale = set_.scale(window);
      const std::int64_t hour = set_.runs[window.run].first_hour + window.offset + kInputHours;
      fmt::format_to(std::back_inserter(text), "{},{}", csv_field(scale.city), format_time(hour * 3600));
      for (std::int64_t k = 0; k < kForecastHours; ++k) {
        const double load = scale.minimum + static_cast<double>(*value++) * (scale.maximum - scale.minimum);
        fmt::format_to(std::back_inserter(text), ",{:.6g}", load);
      }
      text.push_back('\n');
    }
    return file_.write({text.data(), text.size()});
  }

  Result<Done> close() override { return file_.close(); }

 private:
  CsvWriter file_;
  const WindowSet& set_;
};

}  // namespace

Result<std::unique_ptr<PredictionWriter>> write_forecasts(const std::string& path, const DataSet& data) {
  auto file = CsvWriter::create(path, header());
  if (!file) return file.error();
  const auto& windows = static_cast<const Windows&>(data);
  return std::unique_ptr<PredictionWriter>(std::make_unique<ForecastFile>(std::move(*file), windows.set()));
}

}  // namespace ergometer::workload::load_lstm
