// The layout of a marker file: a 64-byte header and 64-byte records, written by the measured process through a mapping
// and read by store. One file a process in RUN/markers; append-only; little-endian; standard library only.
// A record is valid once its `kind` is not 0: the writer fills the rest first and stores `kind` last (release). Records
// of one thread follow each other in the file in the order they were made.
#pragma once

#include <cstdint>
#include <type_traits>

namespace ergometer::marker {

inline constexpr char kMagic[8] = {'E', 'R', 'G', 'M', 'A', 'R', 'K', '1'};
inline constexpr std::uint32_t kRecordBytes = 64;
inline constexpr std::int64_t kNoIndex = -1;
inline constexpr std::uint32_t kTextBytes = 24;
inline constexpr std::uint32_t kNameBytes = 1000;   // longest name; the rest is cut
inline constexpr std::uint32_t kValueBytes = 4096;  // longest text attribute; the rest is cut
inline constexpr std::uint32_t kByName = 1;         // Header::flags

struct Header {
  char magic[8];
  std::uint32_t record_bytes;  // kRecordBytes
  std::int32_t pid;            // as the process sees itself
  std::int32_t rank;           // -1: none
  std::uint32_t flags;         // kByName: records come from `ergometer mark`, matched by name
  std::int64_t created_ns;     // CLOCK_MONOTONIC
  std::uint64_t start_ticks;   // start time of the process (field 22 of /proc/PID/stat), 0 if unknown
  char padding[24];
};

enum Kind : std::uint8_t {
  kEmpty = 0,
  kBegin = 1,   // text: the name's first bytes, continued by `more` kText records; value.end_ns: 0 while it is open
  kEnd = 2,     // end of a region in a file that is only appended to. id of the begin; 0: the innermost open region of
                // this thread whose name is `text` (continued)
  kNumber = 3,  // attribute: text = key (cut), value.number. id 0, as for kString: the region
                // that this thread began or ended last
  kText = 4,    // continues the text of the record before it
  kString = 5,  // attribute: text = key (cut); the value stands in the `more` kText records that follow
};

// A record and the kText records that continue it lie side by side and bear the same id; the first one's `kind` is
// stored last of all, so that whoever sees it sees the whole.
struct Record {
  std::uint8_t kind;    // Kind; stored last
  std::uint8_t length;  // bytes used in text
  std::uint8_t more;    // number of kText records that continue this one
  std::uint8_t reserved;
  std::int32_t tid;
  std::uint64_t id;    // region, unique in the file, from 1
  std::int64_t t_ns;   // kBegin, kEnd: CLOCK_MONOTONIC
  std::int64_t index;  // kBegin: explicit index or kNoIndex
  union {
    double number;        // kNumber
    std::int64_t end_ns;  // kBegin: CLOCK_MONOTONIC of the end, stored into the record by ergometer_end
  } value;
  char text[kTextBytes];
};

static_assert(sizeof(Header) == kRecordBytes && std::is_trivially_copyable_v<Header>);
static_assert(sizeof(Record) == kRecordBytes && std::is_trivially_copyable_v<Record>);

}  // namespace ergometer::marker
