#include "molecules/workloads.hpp"

#include "molecules/data/data_set.hpp"
#include "molecules/data/make_data.hpp"
#include "molecules/data/predictions.hpp"
#include "molecules/networks/dimenet.hpp"
#include "molecules/networks/pna.hpp"
#include "molecules/networks/schnet.hpp"

namespace ergometer::workload::molecules {
namespace {

// Mean squared error of normalised energies.
template <class Network>
class EnergyTask : public Task {
 public:
  torch::nn::Module& network() override { return *network_; }

  Outcome loss(const Batch& batch) override {
    const Inputs inputs = Inputs::of(batch);
    const torch::Tensor error = energies(inputs) - inputs.energy;
    return {(error * error * inputs.weight).sum() / inputs.weight.sum(), {}, {}};
  }

  // [B]: normalised energies; rows from Batch::samples on mean nothing.
  torch::Tensor predict(const Batch& batch) override { return energies(Inputs::of(batch)); }

 private:
  torch::Tensor energies(const Inputs& inputs) { return network_->forward(inputs).narrow(0, 0, inputs.energy.size(0)); }

  Network network_;
};

template <class Network>
std::unique_ptr<Task> make_task(const DataOptions&) {
  return std::make_unique<EnergyTask<Network>>();
}

Result<std::unique_ptr<DataSet>> open_schnet(const DataOptions& options, Split split) {
  return MoleculeData::open(options, split, {SchnetImpl::kCutoff, false});
}

Result<std::unique_ptr<DataSet>> open_dimenet(const DataOptions& options, Split split) {
  return MoleculeData::open(options, split, {DimenetImpl::kCutoff, true});
}

Result<std::unique_ptr<DataSet>> open_pna(const DataOptions& options, Split split) {
  return MoleculeData::open(options, split, {PnaImpl::kCutoff, false});
}

Workload describe(std::string_view name, std::int64_t parameters, std::string_view input, std::string_view source) {
  Workload workload;
  workload.name = name;
  workload.domain = "molecules";
  workload.data_set = "QM9 (dsgdb9nsd_*.xyz, or gdb9.sdf with gdb9.sdf.csv)";
  workload.unit = "molecules";
  workload.input = input;
  workload.parameters = parameters;
  workload.batch = 16;
  workload.epochs = 100;  // ours: the source names none
  workload.optimiser.rule = Rule::adam;
  workload.optimiser.learning_rate = 1e-3;
  workload.source = source;
  workload.make_data = make_data;
  workload.write_predictions = write_predictions;
  return workload;
}

Workload schnet() {
  Workload workload = describe("schnet", 455'809, "atoms, neighbours within 10 angstrom",
                               "Schuett et al. 2017, arXiv:1706.08566; PyTorch Geometric 2.8");
  workload.make_task = make_task<Schnet>;
  workload.open_data = open_schnet;
  return workload;
}

Workload dimenet() {
  Workload workload = describe("dimenet", 2'100'070, "atoms, neighbours within 5 angstrom, angles",
                               "Gasteiger et al. 2020, arXiv:2003.03123; PyTorch Geometric 2.8");
  workload.make_task = make_task<Dimenet>;
  workload.open_data = open_dimenet;
  return workload;
}

Workload pna() {
  Workload workload = describe("pna", 682'501, "atoms, neighbours within 5 angstrom",
                               "Corso et al. 2020, arXiv:2004.05718; PyTorch Geometric 2.8");
  workload.make_task = make_task<Pna>;
  workload.open_data = open_pna;
  return workload;
}

}  // namespace

const Workload kSchnet = schnet();
const Workload kDimenet = dimenet();
const Workload kPna = pna();

}  // namespace ergometer::workload::molecules
