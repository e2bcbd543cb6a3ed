#include "molecules/data/predictions.hpp"

#include <fmt/format.h>

#include "core/csv_writer.hpp"
#include "molecules/data/data_set.hpp"

namespace ergometer::workload::molecules {
namespace {

class Writer : public PredictionWriter {
 public:
  Writer(CsvWriter file, const MoleculeData& data) : file_(std::move(file)), data_(data) {}

  // Rows of `predictions` beyond the samples are padding.
  Result<Done> write(const std::vector<std::int64_t>& samples, const torch::Tensor& predictions) override {
    const auto values = predictions.to(torch::kCPU, torch::kFloat64).contiguous();
    const double* value = values.data_ptr<double>();
    std::string lines;
    for (const std::int64_t sample : samples) {
      const Molecule& molecule = data_.molecule(sample);
      lines += fmt::format("{},{:.6f},{:.6f}\n", molecule.number, atomisation_energy(molecule),
                           data_.scale().mean + data_.scale().deviation * *value++);
    }
    return file_.write(lines);
  }

  Result<Done> close() override { return file_.close(); }

 private:
  CsvWriter file_;
  const MoleculeData& data_;
};

}  // namespace

Result<std::unique_ptr<PredictionWriter>> write_predictions(const std::string& path, const DataSet& data) {
  const auto* molecules = dynamic_cast<const MoleculeData*>(&data);
  if (!molecules) return Error{Fault::usage, "predictions of molecules need a data set of molecules", {}};
  auto file = CsvWriter::create(path, "Molecule,U0 of atomisation [eV],Predicted [eV]");
  if (!file) return file.error();
  return std::unique_ptr<PredictionWriter>(new Writer(std::move(*file), *molecules));
}

}  // namespace ergometer::workload::molecules
