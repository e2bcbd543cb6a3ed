#include "load_lstm/data.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "load_lstm/load_lstm.hpp"
#include "load_lstm/synthetic.hpp"

namespace ergometer::workload::load_lstm {
namespace {

Result<LoadData> read(const DataOptions& options, Split split) {
  if (options.folder == "synthetic") return synthetic_load(split, /*cities=*/1, options.seed);
  return read_load(options.folder + (split == Split::train ? "/train.csv" : "/valid.csv"), options.strict);
}

// For validation: those of the checkpoint, or else of the training data.
Result<std::vector<Scale>> find_scales(const DataOptions& options, const LoadData& data, Split split) {
  if (split == Split::train) return training_scales(data);
  if (!options.state.empty()) return parse_scales(options.state);
  const auto train = read(options, Split::train);
  if (!train) return train.error();
  return training_scales(*train);
}

}  // namespace

Result<Batch> Windows::load(const std::vector<std::int64_t>& samples, std::uint64_t) const {
  const auto count = static_cast<std::int64_t>(samples.size());
  Batch batch;
  batch.samples = count;
  batch.tensors = {torch::empty({count, kInputHours, 1}), torch::empty({count, kForecastHours, 1})};
  float* input = batch.tensors[0].data_ptr<float>();
  float* target = batch.tensors[1].data_ptr<float>();
  for (const std::int64_t sample : samples) {
    const float* values = set_.values(set_.window(sample));
    input = std::copy_n(values, kInputHours, input);
    target = std::copy_n(values + kInputHours, kForecastHours, target);
  }
  return batch;
}

Result<std::unique_ptr<DataSet>> open_data(const DataOptions& options, Split split) {
  auto data = read(options, split);
  if (!data) return data.error();
  const auto scales = find_scales(options, *data, split);
  if (!scales) return scales.error();
  auto set = make_windows(*data, *scales);
  if (!set) return set.error();
  if (set->left_out > 0) {
    data->notes.push_back(fmt::format("{}: {} windows that touch a missing hour are left out, {} remain", data->file,
                                      set->left_out, set->size()));
  }
  return std::unique_ptr<DataSet>(std::make_unique<Windows>(std::move(*set), std::move(data->notes)));
}

}  // namespace ergometer::workload::load_lstm
