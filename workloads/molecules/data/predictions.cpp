#include "molecules/data/predictions.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "molecules/data/data_set.hpp"

namespace ergometer::workload::molecules {
namespace {

class Writer : public PredictionWriter {
 public:
  Writer(std::string path, std::ofstream file, const MoleculeData& data)
      : path_(std::move(path)), file_(std::move(file)), data_(data) {
    file_ << "Molecule,U0 of atomisation [eV],Predicted [eV]\n";
  }

  // Rows of `predictions` beyond the samples are padding.
  Result<Done> write(const std::vector<std::int64_t>& samples, const torch::Tensor& predictions) override {
    const auto values = predictions.to(torch::kCPU, torch::kFloat64).contiguous();
    const double* value = values.data_ptr<double>();
    for (const std::int64_t sample : samples) {
      const Molecule& molecule = data_.molecule(sample);
      file_ << fmt::format("{},{:.6f},{:.6f}\n", molecule.number, atomisation_energy(molecule),
                           data_.scale().mean + data_.scale().deviation * *value++);
    }
    return state();
  }

  Result<Done> close() override {
    file_.close();
    return state();
  }

 private:
  Result<Done> state() const {
    if (file_) return Done{};
    return Error{Fault::data, fmt::format("{}: could not be written (disk full?)", path_), {}};
  }

  std::string path_;
  std::ofstream file_;
  const MoleculeData& data_;
};

}  // namespace

Result<std::unique_ptr<PredictionWriter>> write_predictions(const std::string& path, const DataSet& data) {
  const auto* molecules = dynamic_cast<const MoleculeData*>(&data);
  if (!molecules) return Error{Fault::usage, "predictions of molecules need a data set of molecules", {}};
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) return Error{Fault::data, fmt::format("{}: {}", path, std::generic_category().message(errno)), {}};
  return std::unique_ptr<PredictionWriter>(new Writer(path, std::move(file), *molecules));
}

}  // namespace ergometer::workload::molecules
