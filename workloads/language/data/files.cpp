#include "language/data/files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace ergometer::workload::language {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVocabularySuffix = "-vocab.txt";

std::vector<std::string> names_of(std::string_view part) {
  return {fmt::format("wiki.{}.raw", part), fmt::format("wiki.{}.tokens", part), fmt::format("{}.txt", part)};
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Downloads are often packed; the remedy is then to unpack them.
std::string packed_hint(const fs::path& folder, const std::vector<std::string>& names, std::string otherwise) {
  for (const std::string& name : names) {
    const fs::path packed = folder / (name + ".xz");
    if (is_there(packed)) return fmt::format("unpack it: xz -dk {}", packed.string());
  }
  return otherwise;
}

struct Text {
  std::string_view part;
  std::string name;
};

Result<Text> choose_text(const fs::path& folder, Split split, std::vector<std::string>& notes) {
  std::vector<Text> found;
  for (const std::string_view part : {"train", "valid", "test"}) {
    const auto names = names_of(part);
    const auto name = std::find_if(names.begin(), names.end(), [&](const auto& n) { return is_there(folder / n); });
    if (name != names.end()) found.push_back({part, *name});
  }
  const bool training = split == Split::train;
  const std::string_view wanted = training ? "train" : "valid";
  const std::size_t place = training ? 0 : 1;
  if (found.size() <= place) {
    const auto names = names_of(wanted);
    return Error{Fault::data, fmt::format("{}: no {} text", folder.string(), training ? "training" : "validation"),
                 packed_hint(folder, names,
                             fmt::format("put WikiText there as one of {}, or make some with 'data make'",
                                         fmt::join(names, ", ")))};
  }
  if (found[place].part != wanted) {
    notes.push_back(fmt::format("{}: no {} text: {} with {}", folder.string(), training ? "training" : "validation",
                                training ? "trains" : "validates", found[place].name));
  }
  return found[place];
}

bool is_vocabulary(const std::string& name) {
  return name.size() > kVocabularySuffix.size() &&
         name.compare(name.size() - kVocabularySuffix.size(), kVocabularySuffix.size(), kVocabularySuffix) == 0;
}

Result<std::string> choose_vocabulary(const fs::path& folder) {
  if (is_there(folder / "vocab.txt")) return (folder / "vocab.txt").string();
  std::vector<std::string> found;
  std::vector<std::string> packed = {"vocab.txt"};
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (is_vocabulary(name)) found.push_back(name);
    if (entry->path().extension() == ".xz" && is_vocabulary(entry->path().stem().string())) {
      packed.push_back(entry->path().stem().string());
    }
  }
  if (error) return Error{Fault::data, fmt::format("{}: {}", folder.string(), error.message()), {}};
  std::sort(found.begin(), found.end());
  std::sort(packed.begin(), packed.end());
  if (found.empty()) {
    return Error{Fault::data, fmt::format("{}: no vocabulary (vocab.txt or *-vocab.txt)", folder.string()),
                 packed_hint(folder, packed, "put the vocab.txt of BERT base, uncased, there")};
  }
  if (found.size() > 1) {
    return Error{Fault::data, fmt::format("{}: several vocabularies: {}", folder.string(), fmt::join(found, ", ")),
                 "name the one to use vocab.txt"};
  }
  return (folder / found.front()).string();
}

}  // namespace

Result<TextFiles> find_files(const std::string& folder, Split split) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return Error{Fault::data, fmt::format("{}: {}", folder, error ? error.message() : "not a folder"),
                 "--data names a folder with the text and vocab.txt, or is 'synthetic'"};
  }
  TextFiles files;
  const auto text = choose_text(folder, split, files.notes);
  if (!text) return text.error();
  auto vocabulary = choose_vocabulary(folder);
  if (!vocabulary) return vocabulary.error();
  files.text = (fs::path(folder) / text->name).string();
  files.vocabulary = std::move(*vocabulary);
  return files;
}

}  // namespace ergometer::workload::language
