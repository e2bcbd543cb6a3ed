// Sums over the batches of an epoch, a validation or an inference, and over the ranks. Used by training and inference.
#pragma once

#include <cstdint>
#include <optional>

#include "core/batch.hpp"
#include "engine/in_flight.hpp"
#include "parallel/group.hpp"

namespace ergometer::workload {

class Totals {
 public:
  // A batch's loss counts by what it is the mean of: scored predictions, or samples where the task scores none.
  void add(const Batch& batch, const Scores& scores);
  // Adds the other ranks' sums.
  Result<Done> sum_over(Group& group);

  std::int64_t samples() const { return static_cast<std::int64_t>(samples_); }
  std::int64_t tokens() const { return static_cast<std::int64_t>(tokens_); }
  std::int64_t skipped() const { return static_cast<std::int64_t>(skipped_); }
  // Nothing if no batch counted.
  std::optional<double> loss() const;
  // 0..1; nothing where the task scores no predictions.
  std::optional<double> accuracy() const;

 private:
  double samples_ = 0;
  double tokens_ = 0;
  double skipped_ = 0;
  double loss_ = 0;  // times weight
  double weight_ = 0;
  double correct_ = 0;
  double scored_ = 0;
};

}  // namespace ergometer::workload
