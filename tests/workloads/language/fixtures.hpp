// A small vocabulary, and the real one where the data samples are there. Used by the tests of the language workloads.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "language/text/vocabulary.hpp"
#include "support/temp_dir.hpp"

namespace ergometer::workload::language {

// Numbers: [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, then the rest.
inline constexpr const char* kSmallVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\na\n##b\n##c\n,\n.\n@\n-\n=\nm\n8\n##2\nhello\nworld\n<\n>"
    "\n";

inline Vocabulary small_vocabulary() {
  const test::TempDir folder;
  folder.write("vocab.txt", kSmallVocabulary);
  auto vocabulary = Vocabulary::read((folder / "vocab.txt").string(), 100);
  EXPECT_TRUE(vocabulary) << vocabulary.error().message;
  return std::move(*vocabulary);
}

// Why the data samples cannot be used, or "".
inline std::string samples_absent() {
  if (test::shared_dir().empty()) return "the folder of data samples is absent";
  if (std::system("xz --version > /dev/null 2>&1") != 0) return "xz is not installed";
  return {};
}

// Unpacks data/NAME.xz of the samples to `to`.
inline void unpack(const std::string& name, const std::filesystem::path& to) {
  const std::string command =
      fmt::format("xz -dc '{}/data/{}.xz' > '{}'", test::shared_dir().string(), name, to.string());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

}  // namespace ergometer::workload::language
