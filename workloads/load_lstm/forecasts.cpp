#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include "core/text.hpp"
#include "load_lstm/data.hpp"
#include "load_lstm/load_lstm.hpp"

namespace ergometer::workload::load_lstm {
namespace {

std::string quoted(const std::string& city) {
  if (city.find_first_of(",\"") == std::string::npos) return city;
  std::string text = "\"";
  for (const char letter : city) text += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return text + '"';
}

class ForecastFile final : public PredictionWriter {
 public:
  ForecastFile(std::string path, std::ofstream stream, const WindowSet& set)
      : path_(std::move(path)), stream_(std::move(stream)), set_(set) {
    stream_ << "City,Time [s]";
    for (std::int64_t hour = 1; hour <= kForecastHours; ++hour) stream_ << fmt::format(",Hour {}", hour);
    stream_ << '\n';
  }

  Result<Done> write(const std::vector<std::int64_t>& samples, const torch::Tensor& predictions) override {
    fmt::memory_buffer text;
    const torch::Tensor forecasts = predictions.contiguous();
    const float* value = forecasts.data_ptr<float>();
    for (const std::int64_t sample : samples) {
      const Window& window = set_.window(sample);
      const Scale& scale = set_.scale(window);
      const std::int64_t hour = set_.runs[window.run].first_hour + window.offset + kInputHours;
      fmt::format_to(std::back_inserter(text), "{},{}", quoted(scale.city), format_time(hour * 3600));
      for (std::int64_t k = 0; k < kForecastHours; ++k) {
        const double load = scale.minimum + static_cast<double>(*value++) * (scale.maximum - scale.minimum);
        fmt::format_to(std::back_inserter(text), ",{:.6g}", load);
      }
      text.push_back('\n');
    }
    stream_.write(text.data(), static_cast<std::streamsize>(text.size()));
    return written();
  }

  Result<Done> close() override {
    stream_.close();
    return written();
  }

 private:
  Result<Done> written() const {
    if (!stream_) return Error{Fault::data, fmt::format("{}: could not be written (disk full?)", path_), {}};
    return Done{};
  }

  std::string path_;
  std::ofstream stream_;
  const WindowSet& set_;
};

}  // namespace

Result<std::unique_ptr<PredictionWriter>> write_forecasts(const std::string& path, const DataSet& data) {
  errno = 0;
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  if (!stream) return Error{Fault::data, fmt::format("{}: {}", path, std::generic_category().message(errno)), {}};
  const auto& windows = static_cast<const Windows&>(data);
  return std::unique_ptr<PredictionWriter>(std::make_unique<ForecastFile>(path, std::move(stream), windows.set()));
}

}  // namespace ergometer::workload::load_lstm
