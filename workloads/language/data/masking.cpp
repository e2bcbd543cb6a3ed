#include "language/data/masking.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace ergometer::workload::language {
namespace {

constexpr double kScoredShare = 0.15;
constexpr double kMaskedShare = 0.8;
constexpr double kReplacedShare = 0.1;

std::vector<std::int64_t> candidates(const std::int64_t* ids, std::int64_t length, const SpecialTokens& specials) {
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < length; ++i) {
    if (!specials.contains(static_cast<TokenId>(ids[i]))) places.push_back(i);
  }
  if (places.empty()) {
    places.resize(static_cast<std::size_t>(length - 2));
    std::iota(places.begin(), places.end(), 1);
  }
  return places;
}

}  // namespace

void mask_tokens(std::int64_t* ids, std::int64_t* labels, std::int64_t length, const SpecialTokens& specials,
                 std::uint32_t vocabulary_size, SampleRandom& random) {
  std::fill_n(labels, length, kNotScored);
  std::vector<std::int64_t> places = candidates(ids, length, specials);
  const std::size_t count = std::max<std::size_t>(
      1, static_cast<std::size_t>(std::lround(kScoredShare * static_cast<double>(places.size()))));
  for (std::size_t i = 0; i < count; ++i) {
    // The first steps of Fisher and Yates's shuffle.
    std::swap(places[i], places[i + random.below(static_cast<std::uint32_t>(places.size() - i))]);
    const std::int64_t place = places[i];
    labels[place] = ids[place];
    const double choice = random.uniform();
    if (choice < kMaskedShare) {
      ids[place] = specials.mask;
    } else if (choice < kMaskedShare + kReplacedShare) {
      ids[place] = static_cast<std::int64_t>(random.below(vocabulary_size));
    }
  }
}

}  // namespace ergometer::workload::language
