// The windows of a load file as a DataSet. Used by workload.cpp and forecasts.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/data_set.hpp"
#include "load_lstm/windows.hpp"

namespace ergometer::workload::load_lstm {

class Windows final : public DataSet {
 public:
  Windows(WindowSet set, std::vector<std::string> notes) : set_(std::move(set)), notes_(std::move(notes)) {}

  const WindowSet& set() const { return set_; }

  std::int64_t size() const override { return set_.size(); }
  // Input and target, each [samples, 168, 1] fp32, scaled.
  Result<Batch> load(const std::vector<std::int64_t>& samples, std::uint64_t seed) const override;
  // The scales.
  std::string state() const override { return to_text(set_.scales); }
  std::vector<std::string> notes() const override { return notes_; }
  std::vector<std::pair<std::string, double>> baselines(const std::vector<std::int64_t>& samples) const override {
    return load_lstm::baselines(set_, samples);
  }

 private:
  WindowSet set_;
  std::vector<std::string> notes_;
};

}  // namespace ergometer::workload::load_lstm
