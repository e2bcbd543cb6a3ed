// Which files of a data folder hold what. Used by the data set of texts.
#pragma once

#include <string>
#include <vector>

#include "core/data_set.hpp"
#include "core/result.hpp"

namespace ergometer::workload::language {

struct TextFiles {
  std::string text;
  std::string vocabulary;
  std::vector<std::string> notes;
};

// The first of wiki.train.raw, wiki.train.tokens, train.txt that exists, and so on for valid and test. Without a
// training or a validation text, the next of the three takes its place (train on valid, validate on test) and is noted.
// The vocabulary is vocab.txt, or the one file that is named *-vocab.txt. Errors name what is missing.
[[nodiscard]] Result<TextFiles> find_files(const std::string& folder, Split split);

}  // namespace ergometer::workload::language
