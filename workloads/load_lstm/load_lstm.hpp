// The workload load_lstm: hourly electric load of cities, forecast 7 days ahead by one LSTM layer (protocol of Caspart
// et al. 2022, arXiv:2212.01698). Used by the registry and by the tests.
#pragma once

#include <memory>
#include <string>

#include "core/workload.hpp"

namespace ergometer::workload::load_lstm {

// Reads FOLDER/train.csv, or valid.csv with the scales in options.state; without a state, with those of train.csv.
// Folder "synthetic": what make_data writes for one city, without files.
[[nodiscard]] Result<std::unique_ptr<DataSet>> open_data(const DataOptions& options, Split split);

// Writes FOLDER/train.csv (2015 to 2017) and FOLDER/valid.csv (2018) of `count` synthetic cities (default 14); the same
// bytes for a seed.
[[nodiscard]] Result<Done> make_data(const MakeDataOptions& options, Console console);

// Forecasts as CSV: a row a window, in the unit of the data: city, first hour of the forecast, its 168 hours. `data` is
// of open_data().
[[nodiscard]] Result<std::unique_ptr<PredictionWriter>> write_forecasts(const std::string& path, const DataSet& data);

extern const Workload kWorkload;

}  // namespace ergometer::workload::load_lstm
