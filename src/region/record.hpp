// The layout of a marker file: a 64-byte header and 64-byte records, written by the measured process through a mapping
// and read by store. One file a process in RUN/markers; append-only; little-endian; standard library only.
// A record is valid once its `kind` is not 0: the writer fills the rest first and stores `kind` last (release).
#pragma once

#include <cstdint>
#include <type_traits>

namespace ergometer::marker {

inline constexpr char kMagic[8] = {'E', 'R', 'G', 'M', 'A', 'R', 'K', '1'};
inline constexpr std::uint32_t kRecordBytes = 64;
inline constexpr std::int64_t kNoIndex = -1;

struct Header {
  char magic[8];
  std::uint32_t record_bytes;   // kRecordBytes
  std::int32_t pid;             // as the process sees itself
  std::int32_t rank;            // -1: none
  std::uint32_t flags;          // bit 0: records come from `ergometer mark`, matched by name
  std::int64_t created_ns;      // CLOCK_MONOTONIC
  std::uint64_t start_ticks;    // start time of the process (field 22 of /proc/PID/stat), 0 if unknown
  char padding[24];
};

enum Kind : std::uint8_t {
  kEmpty = 0,
  kBegin = 1,      // text: name (up to 24 bytes; longer names go on in kText records with the same id)
  kEnd = 2,        // id of the begin; 0: the innermost open region of this thread whose name is `text`
  kNumber = 3,     // attribute: text = key (up to 24 bytes, cut), value.number
  kText = 4,       // continuation: `part` = which name (0) or attribute value it continues; text = 24 bytes
  kString = 5,     // attribute: text = key; the value follows in kText records with part = 1
};

struct Record {
  std::uint8_t kind;         // Kind; stored last
  std::uint8_t length;       // bytes used in text
  std::uint8_t part;         // kText: 0 continues a name, 1 a string attribute's value
  std::uint8_t reserved;
  std::int32_t tid;
  std::uint64_t id;          // region, unique in the file, from 1
  std::int64_t t_ns;         // CLOCK_MONOTONIC of begin or end
  std::int64_t index;        // kBegin: explicit index or kNoIndex
  union {
    double number;
    std::uint64_t bits;
  } value;
  char text[24];
};

static_assert(sizeof(Header) == kRecordBytes && std::is_trivially_copyable_v<Header>);
static_assert(sizeof(Record) == kRecordBytes && std::is_trivially_copyable_v<Record>);

}  // namespace ergometer::marker
