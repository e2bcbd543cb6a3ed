#include "load_lstm/load_lstm.hpp"
#include "load_lstm/network.hpp"

namespace ergometer::workload::load_lstm {
namespace {

std::unique_ptr<Task> make_task(const DataOptions&) { return std::make_unique<Forecast>(); }

Workload describe_workload() {
  Workload workload;
  workload.name = "load_lstm";
  workload.domain = "energy forecasting";
  workload.data_set = "hourly load of cities (CSV)";
  workload.unit = "windows";
  workload.input = "168 hours";
  workload.parameters = 4 * (kHidden * 1 + kHidden * kHidden + kHidden + kHidden) + kHidden + 1;
  workload.batch = 64;
  workload.epochs = 30;
  workload.optimiser.learning_rate = 1e-3;
  workload.source = "Caspart et al. 2022, arXiv:2212.01698";
  workload.make_task = make_task;
  workload.open_data = open_data;
  workload.make_data = make_data;
  workload.write_predictions = write_forecasts;
  return workload;
}

}  // namespace

const Workload kWorkload = describe_workload();

}  // namespace ergometer::workload::load_lstm
