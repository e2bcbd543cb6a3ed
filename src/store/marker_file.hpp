// MarkerFile: reads the committed records of one marker file (region/record.hpp) while its process still writes them.
// Used by MarkerLog, which gives them their meaning.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "region/record.hpp"

namespace ergometer {

class MarkerFile {
 public:
  // Called with each committed record, its slot (its id in the file) and the text of the records that continue it.
  using Take = std::function<void(std::uint64_t slot, const marker::Record&, const std::string& rest)>;

  explicit MarkerFile(std::filesystem::path path) : path_(std::move(path)) {}

  // Hands out the records committed since the last call, in file order; one that was half written before comes late,
  // before the new ones. `before_block` is called after a block of records was read and before it is handed out: what
  // it then reads of earlier records is at least as new as the block.
  void poll(const Take& take, const std::function<void()>& before_block);
  // The ends that have been stored meanwhile into the begin records at `slots` (ascending): 0 where still open.
  [[nodiscard]] std::vector<std::int64_t> ends(std::span<const std::uint64_t> slots) const;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // All zero until the file's header has been written.
  [[nodiscard]] const marker::Header& header() const { return header_; }
  [[nodiscard]] std::size_t damaged() const { return damaged_; }
  // Whether the process that wrote the file has ended, by pid and start time.
  [[nodiscard]] bool ended() const;

 private:
  [[nodiscard]] bool read_header(int fd);
  void retry_holes(int fd, const Take& take);
  [[nodiscard]] bool take_block(int fd, std::uint64_t slots, const Take& take,
                                const std::function<void()>& before_block);
  // Hands out the record at `slot` with its continuation; returns how many records that were.
  std::uint64_t take_record(int fd, std::uint64_t slot, const marker::Record& record, const Take& take);

  std::filesystem::path path_;
  marker::Header header_{};
  bool header_read_ = false;
  bool foreign_ = false;              // no marker file
  std::uint64_t next_ = 1;            // slot to read next
  std::vector<std::uint64_t> holes_;  // slots before next_ that were not committed when read
  std::size_t damaged_ = 0;
};

// `text` with each byte that is not part of valid UTF-8 replaced by U+FFFD, so that it can stand in JSON.
[[nodiscard]] std::string valid_utf8(std::string_view text);

}  // namespace ergometer
