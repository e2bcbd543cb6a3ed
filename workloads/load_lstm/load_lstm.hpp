// The workload load_lstm: hourly electric load of cities, forecast 7 days ahead by one LSTM layer (protocol of Caspart
// et al. 2022, arXiv:2212.01698). Used by the registry and by the tests. Every function may fail with a data error.
#pragma once

#include <vector>

#include "core/workload.hpp"

namespace ergometer::workload::load_lstm {

// Mean squared errors over scaled loads (each city 0..1 between its training minimum and maximum).
struct Losses {
  double model = 0;
  double mean_predictor = 0;  // forecasts the city's mean training load for every hour
  double last_week = 0;       // forecasts that the load of 168 hours ago comes again
};

struct EpochReport {
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  double train_loss = 0;
  Losses validation;
  double samples_per_second = 0;  // of the steps alone
  double seconds = 0;             // with the validation
};

// Prints a line an epoch to console.out. Reads DATA/train.csv and DATA/valid.csv.
[[nodiscard]] Result<std::vector<EpochReport>> train(const TrainOptions& options, Console console);

struct InferReport {
  std::int64_t windows = 0;
  Losses losses;
};

// Forecasts every window of DATA/valid.csv with a checkpoint that train() wrote, scaled as in that training.
[[nodiscard]] Result<InferReport> infer(const InferOptions& options, Console console);

// Writes FOLDER/train.csv (2015 to 2017) and FOLDER/valid.csv (2018) of synthetic cities; the same bytes for a seed.
[[nodiscard]] Result<Done> make_data(const MakeDataOptions& options, Console console);

extern const Workload kWorkload;

}  // namespace ergometer::workload::load_lstm
