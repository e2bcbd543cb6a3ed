#include "language/data/corpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

namespace ergometer::workload::language {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{4} << 20;

// Whole lines of the file, and what comes of them.
struct Block {
  std::string text;
  std::vector<TokenId> tokens;
  std::int64_t lines = 0;
  std::int64_t invalid_bytes = 0;
  std::int64_t first_invalid = 0;  // line in the block, from 1
};

void encode(Block& block, const WordPiece& tokeniser) {
  std::string_view rest = block.text;
  block.tokens.reserve(block.text.size() / 4);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    ++block.lines;
    const std::int64_t invalid = tokeniser.encode(rest.substr(0, end), block.tokens);
    if (invalid > 0 && block.first_invalid == 0) block.first_invalid = block.lines;
    block.invalid_bytes += invalid;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

void encode_all(std::vector<Block>& blocks, const WordPiece& tokeniser) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < blocks.size(); i = next++) encode(blocks[i], tokeniser);
  };
  std::vector<std::thread> others;
  try {
    while (others.size() + 1 < blocks.size()) others.emplace_back(work);
  } catch (const std::system_error&) {
    // No more threads to be had: those that run do all the work.
  }
  work();
  for (std::thread& other : others) other.join();
}

// Cuts a file into blocks at line ends.
class BlockReader {
 public:
  explicit BlockReader(std::ifstream file) : file_(std::move(file)) {}

  // An empty block at the end of the file.
  Block next() {
    Block block;
    block.text = std::exchange(rest_, {});
    while (file_) {
      const std::size_t before = block.text.size();
      block.text.resize(before + kBlockBytes);
      file_.read(block.text.data() + before, static_cast<std::streamsize>(kBlockBytes));
      block.text.resize(before + static_cast<std::size_t>(file_.gcount()));
      const std::size_t line_end = block.text.rfind('\n');
      if (file_ && line_end == std::string::npos) continue;  // a line longer than a block
      if (file_) {
        rest_ = block.text.substr(line_end + 1);
        block.text.resize(line_end + 1);
      }
      break;
    }
    return block;
  }
  bool failed() const { return file_.bad(); }

 private:
  std::ifstream file_;
  std::string rest_;
};

}  // namespace

Result<Corpus> read_corpus(const std::string& path, const WordPiece& tokeniser, bool strict, int threads) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Fault::data, fmt::format("{}: {}", path, std::generic_category().message(errno)), {}};
  BlockReader reader(std::move(file));
  Corpus corpus;
  std::int64_t lines = 0;
  while (true) {
    std::vector<Block> blocks;
    while (blocks.size() < static_cast<std::size_t>(std::max(1, threads))) {
      blocks.push_back(reader.next());
      if (blocks.back().text.empty()) break;
    }
    if (reader.failed()) return Error{Fault::data, fmt::format("{}: cannot be read as a file", path), {}};
    encode_all(blocks, tokeniser);
    for (const Block& block : blocks) {
      corpus.tokens.insert(corpus.tokens.end(), block.tokens.begin(), block.tokens.end());
      if (block.invalid_bytes > 0 && corpus.invalid_bytes == 0) {
        corpus.first_invalid = fmt::format("{}:{}", path, lines + block.first_invalid);
      }
      corpus.invalid_bytes += block.invalid_bytes;
      lines += block.lines;
    }
    if (strict && corpus.invalid_bytes > 0) {
      return Error{Fault::data, fmt::format("{}: a byte that is no UTF-8", corpus.first_invalid),
                   "convert the file (iconv -t UTF-8), or leave --strict out: such bytes are then left out"};
    }
    if (blocks.back().text.empty()) return corpus;
  }
}

}  // namespace ergometer::workload::language
