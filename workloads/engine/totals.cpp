#include "engine/totals.hpp"

#include <cmath>

namespace ergometer::workload {

void Totals::add(const Batch& batch, const Scores& scores) {
  const auto samples = static_cast<double>(batch.samples);
  const bool has_accuracy = !std::isnan(scores.scored);
  const double weight = has_accuracy ? scores.scored : samples;
  samples_ += samples;
  tokens_ += static_cast<double>(batch.tokens);
  skipped_ += static_cast<double>(batch.skipped);
  weight_ += weight;
  if (weight > 0) loss_ += scores.loss * weight;
  if (has_accuracy) {
    correct_ += scores.correct;
    scored_ += scores.scored;
  }
}

Result<Done> Totals::sum_over(Group& group) {
  const auto sums = group.sum({samples_, tokens_, skipped_, loss_, weight_, correct_, scored_});
  if (!sums) return sums.error();
  samples_ = (*sums)[0];
  tokens_ = (*sums)[1];
  skipped_ = (*sums)[2];
  loss_ = (*sums)[3];
  weight_ = (*sums)[4];
  correct_ = (*sums)[5];
  scored_ = (*sums)[6];
  return Done{};
}

std::optional<double> Totals::loss() const {
  if (weight_ > 0) return loss_ / weight_;
  return std::nullopt;
}

std::optional<double> Totals::accuracy() const {
  if (scored_ > 0) return correct_ / scored_;
  return std::nullopt;
}

}  // namespace ergometer::workload
