// The molecules of QM9, or synthetic ones, as batches for the networks. Target: the energy of atomisation U0 in eV,
// less the training molecules' mean and divided by their deviation. Used by workloads.cpp and predictions.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/data_set.hpp"
#include "molecules/data/collate.hpp"

namespace ergometer::workload::molecules {

// Mean and deviation of the training molecules' targets, eV. A deviation of 0 (one molecule) counts as 1.
struct Scale {
  double mean = 0;
  double deviation = 1;
};

class MoleculeData : public DataSet {
 public:
  // One molecule in ten, by a hash of its number that no seed changes, is for validation; of two or more at least one
  // is for training and one for validation. "synthetic" has 8192 and 1024 of its own. The scale is that of
  // options.state where there is one.
  static Result<std::unique_ptr<DataSet>> open(const DataOptions& options, Split split, const GraphRule& rule);

  std::int64_t size() const override { return static_cast<std::int64_t>(molecules_.size()); }
  Result<Batch> load(const std::vector<std::int64_t>& samples, std::uint64_t seed) const override;
  std::string state() const override;
  std::vector<std::string> notes() const override { return notes_; }
  std::vector<std::pair<std::string, double>> baselines(const std::vector<std::int64_t>& samples) const override;

  const Molecule& molecule(std::int64_t sample) const { return molecules_[static_cast<std::size_t>(sample)]; }
  const Scale& scale() const { return scale_; }
  // Empty unless batches are padded.
  const Shapes& shapes() const { return shapes_; }

 private:
  MoleculeData() = default;
  Result<Done> set_scale(const std::string& state, const std::vector<Molecule>& training);
  double normalised(std::int64_t sample) const;

  std::vector<Molecule> molecules_;
  std::vector<std::string> notes_;
  Scale scale_;
  Shapes shapes_;
  GraphRule rule_;
  std::int64_t batch_ = 1;
};

}  // namespace ergometer::workload::molecules
