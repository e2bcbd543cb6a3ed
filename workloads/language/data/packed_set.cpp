#include "language/data/packed_set.hpp"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "core/runtime.hpp"
#include "language/data/masking.hpp"

namespace ergometer::workload::language {

Result<Done> check_sequence(std::int64_t sequence) {
  if (sequence == 0 || (sequence >= 3 && sequence <= kLongestSequence)) return Done{};
  return Error{Fault::usage, fmt::format("sequences of {} tokens cannot be", sequence),
               fmt::format("choose 3 to {}: the networks have that many positions, and two are [CLS] and [SEP]",
                           kLongestSequence)};
}

PackedSet::PackedSet(TokenRow row, const DataOptions& options)
    : row_(std::move(row)),
      sequence_(options.sequence > 0 ? options.sequence : kDefaultSequence),
      padded_batch_(options.graphs ? options.batch : 0) {
  const std::int64_t left_out = static_cast<std::int64_t>(row_.tokens.size()) % body();
  if (left_out > 0) {
    row_.notes.push_back(fmt::format("{}: the last {} of {} tokens fill no sequence of {}", row_.name, left_out,
                                     row_.tokens.size(), sequence_));
  }
}

Result<std::unique_ptr<DataSet>> PackedSet::make(TokenRow row, const DataOptions& options) {
  std::unique_ptr<PackedSet> set(new PackedSet(std::move(row), options));
  if (set->size() == 0) {
    return Error{Fault::data,
                 fmt::format("{}: {} tokens do not fill one sequence of {}", set->row_.name, set->row_.tokens.size(),
                             set->sequence_),
                 "take a longer text or a shorter sequence"};
  }
  return std::unique_ptr<DataSet>(std::move(set));
}

std::int64_t PackedSet::size() const { return static_cast<std::int64_t>(row_.tokens.size()) / body(); }

void PackedSet::fill(std::int64_t sample, std::uint64_t seed, std::int64_t* ids, std::int64_t* labels) const {
  ids[0] = row_.specials.begin;
  std::copy_n(row_.tokens.begin() + sample * body(), body(), ids + 1);
  ids[sequence_ - 1] = row_.specials.end;
  SampleRandom random(seed, static_cast<std::uint64_t>(sample));
  mask_tokens(ids, labels, sequence_, row_.specials, row_.vocabulary_size, random);
}

Result<Batch> PackedSet::load(const std::vector<std::int64_t>& samples, std::uint64_t seed) const {
  try {
    const auto count = static_cast<std::int64_t>(samples.size());
    const std::int64_t rows = std::max(count, padded_batch_);
    const torch::Tensor ids = torch::full({rows, sequence_}, std::int64_t{row_.specials.pad}, torch::kInt64);
    const torch::Tensor labels = torch::full({rows, sequence_}, kNotScored, torch::kInt64);
    auto* to_ids = ids.data_ptr<std::int64_t>();
    auto* to_labels = labels.data_ptr<std::int64_t>();
    for (const std::int64_t sample : samples) {
      fill(sample, seed, to_ids, to_labels);
      to_ids += sequence_;
      to_labels += sequence_;
    }
    Batch batch;
    batch.tensors = {ids, labels};
    batch.samples = count;
    batch.tokens = count * sequence_;
    return batch;
  } catch (const c10::Error& error) {
    return Error{Fault::data, fmt::format("LibTorch: {}", brief(error)), {}};
  }
}

std::vector<std::pair<std::string, double>> PackedSet::baselines(const std::vector<std::int64_t>& samples) const {
  std::vector<double> counts(row_.vocabulary_size, 0.0);
  double known = 0;
  for (const TokenId id : row_.tokens) {
    if (row_.specials.contains(id)) continue;
    ++counts[id];
    ++known;
  }
  double sum = 0;
  double scored = 0;
  for (const std::int64_t sample : samples) {
    const auto begin = row_.tokens.begin() + sample * body();
    std::for_each(begin, begin + body(), [&](TokenId id) {
      if (row_.specials.contains(id)) return;
      sum -= std::log(counts[id] / known);
      ++scored;
    });
  }
  if (scored == 0) return {};
  return {{"unigram_predictor", sum / scored}};
}

}  // namespace ergometer::workload::language
