#include "store/marker_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

using marker::Header;
using marker::kRecordBytes;
using marker::Record;

static_assert(std::endian::native == std::endian::little, "marker files are little-endian");

constexpr std::uint64_t kBlock = 1024;    // records read at once; this many empty ones in a row are the end
constexpr std::size_t kMaxHoles = 65536;  // more are damage, not threads in the middle of a record

class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

// Reads up to `count` records at `slot`; returns how many there were.
std::uint64_t read_records(int fd, std::uint64_t slot, Record* out, std::uint64_t count) {
  const std::size_t wanted = count * kRecordBytes;
  std::size_t used = 0;
  while (used < wanted) {
    const ssize_t n =
        ::pread(fd, reinterpret_cast<char*>(out) + used, wanted - used, static_cast<off_t>(slot * kRecordBytes + used));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    used += static_cast<std::size_t>(n);
  }
  return used / kRecordBytes;
}

bool plausible(const Record& record) {
  return record.kind <= marker::kString && record.length <= marker::kTextBytes && record.t_ns >= 0 &&
         (record.kind != marker::kBegin || record.value.end_ns >= 0);
}

}  // namespace

bool MarkerFile::read_header(int fd) {
  if (header_read_ || foreign_) return header_read_;
  Record raw[2]{};
  Header header{};
  // Twice: the magic is stored last, so the second read sees all that stood before it.
  for (auto& copy : raw)
    if (read_records(fd, 0, &copy, 1) != 1) return false;
  if (std::memcmp(&raw[0], marker::kMagic, sizeof marker::kMagic) != 0) {
    const Record empty{};
    if (std::memcmp(&raw[1], &empty, sizeof empty) != 0) {
      foreign_ = true;
      ++damaged_;
    }
    return false;
  }
  std::memcpy(static_cast<void*>(&header), &raw[1], sizeof header);
  foreign_ = header.record_bytes != kRecordBytes;
  if (foreign_) {
    ++damaged_;
    return false;
  }
  header_ = header;
  return header_read_ = true;
}

void MarkerFile::poll(const Take& take, const std::function<void()>& before_block) {
  const Descriptor file(path_);
  struct stat st {};
  if (file.get() < 0 || ::fstat(file.get(), &st) != 0 || !S_ISREG(st.st_mode) || !read_header(file.get())) return;
  const auto slots = static_cast<std::uint64_t>(st.st_size) / kRecordBytes;
  if (!holes_.empty()) {
    before_block();
    retry_holes(file.get(), take);
  }
  while (next_ < slots && take_block(file.get(), slots, take, before_block)) {
  }
}

void MarkerFile::retry_holes(int fd, const Take& take) {
  std::vector<std::uint64_t> still;
  for (const std::uint64_t slot : holes_) {
    Record record{};
    if (read_records(fd, slot, &record, 1) != 1 || record.kind == marker::kEmpty)
      still.push_back(slot);
    else if (record.kind != marker::kText && read_records(fd, slot, &record, 1) == 1)
      take_record(fd, slot, record, take);
  }
  holes_ = std::move(still);
}

bool MarkerFile::take_block(int fd, std::uint64_t slots, const Take& take, const std::function<void()>& before_block) {
  static thread_local std::vector<Record> seen(kBlock), block(kBlock);
  // Read twice: whatever was committed when the first read ended is whole in the second one, on any processor.
  std::uint64_t count = read_records(fd, next_, seen.data(), std::min(kBlock, slots - next_));
  while (count > 0 && seen[count - 1].kind == marker::kEmpty) --count;
  count = std::min(count, read_records(fd, next_, block.data(), count));
  if (count == 0) return false;
  before_block();

  const std::uint64_t first = next_;
  bool after_hole = false;
  std::uint64_t i = 0;
  while (i < count) {
    const Record& record = block[i];
    if (seen[i].kind == marker::kEmpty) {
      if (holes_.size() < kMaxHoles) holes_.push_back(first + i);
      after_hole = true;
      ++i;
    } else if (record.kind == marker::kText) {
      if (!after_hole) ++damaged_;  // otherwise it continues the record that is still being written
      ++i;
    } else {
      after_hole = false;
      i += take_record(fd, first + i, record, take);
    }
  }
  next_ = first + i;
  return true;
}

std::uint64_t MarkerFile::take_record(int fd, std::uint64_t slot, const Record& record, const Take& take) {
  if (!plausible(record)) {
    ++damaged_;
    return 1;
  }
  static const std::string kNoText;
  if (record.more == 0) {
    take(slot, record, kNoText);
    return 1;
  }
  std::vector<Record> parts(record.more);
  const std::uint64_t read = read_records(fd, slot + 1, parts.data(), record.more);
  std::string rest;
  std::uint64_t used = 0;
  for (; used < read && parts[used].kind == marker::kText && plausible(parts[used]); ++used)
    rest.append(parts[used].text, parts[used].length);
  if (used < record.more) ++damaged_;
  take(slot, record, rest);
  return 1 + used;
}

std::vector<std::int64_t> MarkerFile::ends(std::span<const std::uint64_t> slots) const {
  std::vector<std::int64_t> out(slots.size(), 0);
  const Descriptor file(path_);
  if (slots.empty() || file.get() < 0) return out;
  std::vector<Record> block(kBlock);
  for (std::size_t i = 0; i < slots.size();) {
    // One read for neighbours, however many are still open.
    std::size_t end = i;
    while (end < slots.size() && slots[end] < slots[i] + kBlock) ++end;
    const std::uint64_t read = read_records(file.get(), slots[i], block.data(), slots[end - 1] - slots[i] + 1);
    for (std::size_t j = i; j < end; ++j) {
      const std::uint64_t at = slots[j] - slots[i];
      if (at < read && block[at].kind == marker::kBegin) out[j] = std::max<std::int64_t>(block[at].value.end_ns, 0);
    }
    i = end;
  }
  return out;
}

bool MarkerFile::ended() const {
  if (!header_read_) return foreign_;
  const auto stat = read_file("/proc/" + std::to_string(header_.pid) + "/stat", 4096);
  if (!stat) return true;
  const auto bracket = stat->rfind(')');
  if (bracket == std::string::npos) return false;
  const auto fields = split(std::string_view(*stat).substr(bracket + 1), ' ');
  // fields[0] is empty, fields[1] is field 3, the state; a zombie writes no more.
  if (fields.size() < 21) return false;
  if (fields[1] == "Z" || fields[1] == "X") return true;
  return header_.start_ticks != 0 && parse_uint(fields[20]) != header_.start_ticks;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char lead = byte(i);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                               : (lead & 0xF0) == 0xE0       ? 3
                               : lead >= 0xF0 && lead < 0xF5 ? 4
                                                             : 0;
    bool valid = length != 0 && i + length <= text.size();
    for (std::size_t k = 1; valid && k < length; ++k) valid = (byte(i + k) & 0xC0) == 0x80;
    // Overlong forms, surrogates and what lies beyond U+10FFFF.
    if (valid && length == 3) valid = !(lead == 0xE0 && byte(i + 1) < 0xA0) && !(lead == 0xED && byte(i + 1) >= 0xA0);
    if (valid && length == 4) valid = !(lead == 0xF0 && byte(i + 1) < 0x90) && !(lead == 0xF4 && byte(i + 1) >= 0x90);
    if (valid) {
      out += text.substr(i, length);
      i += length;
    } else {
      out += "\xEF\xBF\xBD";
      ++i;
    }
  }
  return out;
}

}  // namespace ergometer
