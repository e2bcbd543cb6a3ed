#include "language/data/make_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <system_error>

#include "language/data/grammar.hpp"

namespace ergometer::workload::language {
namespace {

constexpr std::int64_t kDefaultParagraphs = 20000;
constexpr std::int64_t kLeastValidation = 20;
constexpr std::int64_t kParagraphsOfArticle = 5;
// Streams of random numbers: 0 is the grammar's own.
constexpr std::uint64_t kTrainArticles = 1;
constexpr std::uint64_t kValidArticles = std::uint64_t{1} << 32U;

Result<Done> close(std::ofstream& file, const std::string& path) {
  errno = 0;
  file.close();
  if (file) return Done{};
  return Error{Fault::data, fmt::format("{}: could not be written: {}", path, std::generic_category().message(errno)),
               "is the folder writable, the disk full?"};
}

// Headings and blank lines as in WikiText: a heading is " = Title = ", a section " = = Section = = ".
Result<Done> write_text(const std::string& path, const Grammar& grammar, const MakeDataOptions& options,
                        std::int64_t paragraphs, std::uint64_t first_article) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (std::int64_t done = 0; done < paragraphs; done += kParagraphsOfArticle) {
    // Each article has its own stream, so that a larger count does not change the first ones.
    SampleRandom random(options.seed, first_article + static_cast<std::uint64_t>(done / kParagraphsOfArticle));
    const std::size_t topic = random.below(static_cast<std::uint32_t>(grammar.topics()));
    file << " \n = " << grammar.title(topic) << " = \n \n";
    const std::int64_t count = std::min(kParagraphsOfArticle, paragraphs - done);
    for (std::int64_t i = 0; i < count; ++i) {
      if (i % 2 == 1) file << " \n = = " << grammar.section(random) << " = = \n \n";
      file << ' ' << grammar.paragraph(topic, random) << " \n";
    }
  }
  return close(file, path);
}

Result<Done> write_vocabulary(const std::string& path, const Grammar& grammar) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (const std::string& token : grammar.vocabulary()) file << token << '\n';
  return close(file, path);
}

}  // namespace

Result<Done> make_data(const MakeDataOptions& options, Console console) {
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) return Error{Fault::data, fmt::format("{}: {}", options.folder, error.message()), {}};
  const std::int64_t train = options.count > 0 ? options.count : kDefaultParagraphs;
  const std::int64_t valid = std::max(kLeastValidation, train / 10);
  const Grammar grammar(options.seed);
  const std::filesystem::path folder(options.folder);
  if (auto done = write_text((folder / "wiki.train.raw").string(), grammar, options, train, kTrainArticles); !done) {
    return done;
  }
  if (auto done = write_text((folder / "wiki.valid.raw").string(), grammar, options, valid, kValidArticles); !done) {
    return done;
  }
  if (auto done = write_vocabulary((folder / "vocab.txt").string(), grammar); !done) return done;
  console.out << fmt::format("{}: made-up text, wiki.train.raw of {} and wiki.valid.raw of {} paragraphs, vocab.txt\n",
                             options.folder, train, valid);
  return Done{};
}

}  // namespace ergometer::workload::language
