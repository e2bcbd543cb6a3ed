// Which tokens a masked language model must guess. Used by packed_set.hpp.
#pragma once

#include <cstdint>

#include "language/data/random.hpp"
#include "language/text/vocabulary.hpp"

namespace ergometer::workload::language {

// The label of a position that is not scored, as in Hugging Face and PyTorch's cross-entropy.
inline constexpr std::int64_t kNotScored = -100;

// Chooses 15 % (rounded, at least one) of the tokens of `ids` that are not special, at random; if all are special, of
// those between the first and the last. Their labels become their ids, all other labels kNotScored; of the chosen, 80 %
// become [MASK], 10 % a random token of the vocabulary, and 10 % stay (Devlin et al. 2018, arXiv:1810.04805, 3.1). Both
// arrays have `length` >= 3 elements.
void mask_tokens(std::int64_t* ids, std::int64_t* labels, std::int64_t length, const SpecialTokens& specials,
                 std::uint32_t vocabulary_size, SampleRandom& random);

}  // namespace ergometer::workload::language
