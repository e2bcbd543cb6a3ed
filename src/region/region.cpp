#include "ergometer/region.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>

#include "region/record.hpp"

extern "C" {
int ergometer_state_ = 0;
}

namespace ergometer::marker {
namespace {

// Large enough that mapping and releasing chunks costs little a record, small enough for a program with few markers.
constexpr std::uint64_t kChunkBytes = 2048 * 1024;
constexpr std::uint64_t kChunkSlots = kChunkBytes / kRecordBytes;
constexpr std::uint64_t kMaxChunks = 8192;  // 16 GiB, a day of three thousand regions a second
constexpr int kPopulateWrite = 23;           // MADV_POPULATE_WRITE, which older headers lack
// The handle of a region is its record's slot, with the number of forks above it: a region begun before a fork is
// then nobody's in the child.
constexpr int kSlotBits = 48;
constexpr std::uint64_t kSlotMask = (std::uint64_t{1} << kSlotBits) - 1;

// The marker file of this process. All of it is static: nothing is allocated, so nothing is lost in a fork and
// nothing is destroyed while other threads still mark at the process's end.
std::mutex g_mutex;                         // guards starting and growing
std::atomic<Record*> g_chunks[kMaxChunks];  // mapped on demand, never unmapped
std::atomic<std::uint64_t> g_next_slot{1};  // slot 0 is the header
std::uint64_t g_forks = 0;                  // changes in a child of fork only, while it has one thread
char g_path[PATH_MAX];
dev_t g_device;
ino_t g_inode;

thread_local std::int32_t t_tid = 0;

void set_state(int state) { __atomic_store_n(&ergometer_state_, state, __ATOMIC_RELEASE); }
int get_state() { return __atomic_load_n(&ergometer_state_, __ATOMIC_ACQUIRE); }

std::int64_t now_ns() {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return static_cast<std::int64_t>(ts.tv_sec) * 1000000000 + ts.tv_nsec;
}

std::int32_t thread_id() {
  if (t_tid == 0) t_tid = static_cast<std::int32_t>(::syscall(SYS_gettid));
  return t_tid;
}

// Field 22 of /proc/self/stat: the fields after the command's name, which may itself hold blanks and brackets.
std::uint64_t start_ticks() {
  char text[1024];
  const int fd = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (n <= 0) return 0;
  text[n] = '\0';
  const char* at = std::strrchr(text, ')');
  for (int field = 2; at && field < 22; ++field) at = std::strchr(at + 1, ' ');
  return at ? std::strtoull(at, nullptr, 10) : 0;
}

// The rank that the launcher gave, the most specific launcher first; torchrun's RANK last, since other programs use
// that name for other things.
std::int32_t rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}) {
    const char* text = std::getenv(name);
    if (!text || !*text) continue;
    char* end = nullptr;
    errno = 0;
    const long value = std::strtol(text, &end, 10);
    if (*end == '\0' && errno == 0 && value >= 0 && value <= INT_MAX) return static_cast<std::int32_t>(value);
  }
  return -1;
}

// Maps chunk `index` of the file, with its blocks allocated: a full disk must show here and not as SIGBUS in a store
// into the mapping. The file is opened by name each time: a program may close descriptors that it does not know.
Record* map_chunk(std::uint64_t index, bool create) {
  const int fd = ::open(g_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT | O_EXCL : 0), 0666);
  if (fd < 0) return nullptr;
  struct stat st {};
  void* at = MAP_FAILED;
  const bool ours = ::fstat(fd, &st) == 0 && (create || (st.st_dev == g_device && st.st_ino == g_inode));
  const auto offset = static_cast<off_t>(index * kChunkBytes);
  if (ours && ::posix_fallocate(fd, offset, static_cast<off_t>(kChunkBytes)) == 0)
    at = ::mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
  ::close(fd);
  if (at == MAP_FAILED) {
    if (create) ::unlink(g_path);
    return nullptr;
  }
  // In one go, since a fault a page costs several times as much; a kernel before 5.14 refuses, which is as well.
  ::madvise(at, kChunkBytes, kPopulateWrite);
  g_device = st.st_dev;
  g_inode = st.st_ino;
  return static_cast<Record*>(at);
}

Record* grow(std::uint64_t chunk) {
  const int saved_errno = errno;
  const std::lock_guard<std::mutex> lock(g_mutex);
  Record* mapped = g_chunks[chunk].load(std::memory_order_acquire);
  if (!mapped && get_state() == 1) {
    mapped = map_chunk(chunk, false);
    if (mapped) {
      g_chunks[chunk].store(mapped, std::memory_order_release);
      // Full chunks need not count as this process's memory; a thread that still writes there gets its page back.
      if (Record* full = chunk >= 2 ? g_chunks[chunk - 2].load(std::memory_order_relaxed) : nullptr)
        ::madvise(full, kChunkBytes, MADV_DONTNEED);
    } else {
      set_state(-1);
    }
  }
  errno = saved_errno;
  return mapped;
}

// Place of a slot, or null when markers have turned off.
inline Record* place(std::uint64_t slot) {
  const std::uint64_t chunk = slot / kChunkSlots;
  if (chunk >= kMaxChunks) {
    set_state(-1);
    return nullptr;
  }
  Record* mapped = g_chunks[chunk].load(std::memory_order_acquire);
  if (!mapped) mapped = grow(chunk);
  return mapped ? mapped + slot % kChunkSlots : nullptr;
}

void before_fork() { g_mutex.lock(); }
void parent_after_fork() { g_mutex.unlock(); }
void child_after_fork() {
  // The chunks stay mapped in the parent; here they are only in the way.
  const std::uint64_t used = g_next_slot.load(std::memory_order_relaxed) / kChunkSlots + 1;
  for (std::uint64_t i = 0; i < used && i < kMaxChunks; ++i)
    if (Record* mapped = g_chunks[i].exchange(nullptr, std::memory_order_relaxed)) ::munmap(mapped, kChunkBytes);
  g_next_slot.store(1, std::memory_order_relaxed);
  ++g_forks;
  t_tid = 0;
  if (get_state() == 1) set_state(0);
  g_mutex.unlock();
}

// Copies a host name as part of a file name.
void append_file_name(std::string& out, const char* name) {
  for (; *name; ++name) {
    const char c = *name;
    const bool keep =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    out += keep ? c : '_';
  }
}

bool open_file() {
  const char* run = std::getenv("ERGOMETER_RUN");
  if (!run || !*run) return false;
  // Absolute, since the program may change its folder before the file grows.
  char absolute[PATH_MAX];
  if (!::realpath(run, absolute)) return false;
  char host[256] = "host";
  ::gethostname(host, sizeof host - 1);
  const std::int64_t created = now_ns();
  std::string path = std::string(absolute) + "/markers";
  ::mkdir(path.c_str(), 0777);
  path += '/';
  append_file_name(path, host);
  path += '-' + std::to_string(::getpid()) + '-' + std::to_string(created) + ".erg";
  if (path.size() >= sizeof g_path) return false;
  std::memcpy(g_path, path.c_str(), path.size() + 1);
  Record* first = map_chunk(0, true);
  if (!first) return false;

  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.record_bytes = kRecordBytes;
  header.pid = ::getpid();
  header.rank = rank();
  header.created_ns = created;
  header.start_ticks = start_ticks();
  // The magic last: with it the rest is there.
  std::memcpy(reinterpret_cast<char*>(first) + sizeof kMagic, reinterpret_cast<const char*>(&header) + sizeof kMagic,
              sizeof header - sizeof kMagic);
  std::uint64_t magic = 0;
  std::memcpy(&magic, kMagic, sizeof magic);
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(first), magic, __ATOMIC_RELEASE);
  g_chunks[0].store(first, std::memory_order_release);
  return true;
}

bool start() {
  const int saved_errno = errno;
  {
    const std::lock_guard<std::mutex> lock(g_mutex);
    if (get_state() == 0) {
      static const bool registered = ::pthread_atfork(before_fork, parent_after_fork, child_after_fork) == 0;
      bool opened = false;
      try {
        opened = registered && open_file();
      } catch (const std::bad_alloc&) {  // of the path's string: no memory, no markers
      }
      set_state(opened ? 1 : -1);
    }
  }
  errno = saved_errno;
  return get_state() == 1;
}

inline bool active() {
  const int state = get_state();
  return state == 1 || (state == 0 && start());
}

bool is_continuation_byte(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Length of `text` cut to `limit` bytes without cutting a UTF-8 character in two.
std::size_t cut_length(const char* text, std::size_t limit) {
  std::size_t n = ::strnlen(text, limit + 1);
  if (n <= limit) return n;
  n = limit;
  while (n > 0 && is_continuation_byte(text[n])) --n;
  return n;
}

// Path separators and control characters would make paths ambiguous or unreadable.
inline char safe(char c) {
  return c == '/' || c == '[' || c == ']' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '_' : c;
}

// A record as it is asked for: `head` (cut to kTextBytes) goes into the record itself, `rest` into records that
// continue it. `value` holds the bits of Record::value.
struct Draft {
  Kind kind;
  bool name;         // the text is a region's name
  std::uint64_t id;  // 0: becomes the slot
  std::int64_t t_ns;
  std::int64_t index;
  std::uint64_t value;
  const char* head;
  std::size_t head_bytes;
  const char* rest;
  std::size_t rest_bytes;
};

inline void store_text(Record* at, const char* text, std::size_t n, bool name) {
  at->length = static_cast<std::uint8_t>(n);
  if (name)
    for (std::size_t i = 0; i < n; ++i) at->text[i] = safe(text[i]);
  else
    std::memcpy(at->text, text, n);
}

// The kind last, when the rest is there.
inline void store_kind(Record* at, Kind kind) {
  __atomic_store_n(&at->kind, static_cast<std::uint8_t>(kind), __ATOMIC_RELEASE);
}

// The rest of a draft, in the slots from `slot` on; false when markers have turned off.
bool write_rest(const Draft& draft, std::uint64_t slot, std::uint64_t id, std::int32_t tid) {
  for (std::size_t offset = 0; offset < draft.rest_bytes; offset += kTextBytes) {
    Record* at = place(slot++);
    if (!at) return false;
    at->tid = tid;
    at->id = id;
    const std::size_t left = draft.rest_bytes - offset;
    store_text(at, draft.rest + offset, left < kTextBytes ? left : kTextBytes, draft.name);
    store_kind(at, kText);
  }
  return true;
}

// Returns the record's slot, or 0 when markers are off. Fields go straight to their place, which is 0 before: a record
// built aside and copied in one piece would wait for its own narrow stores (a third of a marker's time).
std::uint64_t write(const Draft& draft) {
  const std::size_t more = (draft.rest_bytes + kTextBytes - 1) / kTextBytes;
  const std::uint64_t slot = g_next_slot.fetch_add(1 + more, std::memory_order_relaxed);
  const std::uint64_t id = draft.id != 0 ? draft.id : slot;
  const std::int32_t tid = thread_id();
  if (more > 0 && !write_rest(draft, slot + 1, id, tid)) return 0;
  Record* at = place(slot);
  if (!at) return 0;
  at->more = static_cast<std::uint8_t>(more);
  at->tid = tid;
  at->id = id;
  at->t_ns = draft.t_ns;
  at->index = draft.index;
  std::memcpy(&at->value, &draft.value, sizeof at->value);
  store_text(at, draft.head, draft.head_bytes, draft.name);
  store_kind(at, draft.kind);
  return slot;
}

// The region's id in this process's file, or 0 if it is not of this process.
std::uint64_t id_of(ergometer_region region) {
  return region >> kSlotBits == (g_forks & 0xFFFF) ? region & kSlotMask : 0;
}

}  // namespace
}  // namespace ergometer::marker

using namespace ergometer::marker;

extern "C" ergometer_region ergometer_begin_(const char* name, int64_t index) {
  if (!active()) return 0;
  if (!name || !*name) name = "_";
  const std::size_t length = cut_length(name, kNameBytes);
  const std::size_t head = length < kTextBytes ? length : kTextBytes;
  const std::int64_t place_in_order = index < 0 ? kNoIndex : index;
  const std::uint64_t slot =
      write({kBegin, true, 0, now_ns(), place_in_order, 0, name, head, name + head, length - head});
  return slot ? slot | (g_forks & 0xFFFF) << kSlotBits : 0;
}

extern "C" void ergometer_end_(ergometer_region region) {
  const std::int64_t t = now_ns();
  const std::uint64_t slot = id_of(region);
  if (slot == 0 || !active()) return;
  Record* record = place(slot);
  // A region that was ended before keeps its end.
  if (record && __atomic_load_n(&record->value.end_ns, __ATOMIC_RELAXED) == 0)
    __atomic_store_n(&record->value.end_ns, t, __ATOMIC_RELEASE);
}

extern "C" void ergometer_number_(ergometer_region region, const char* key, double value) {
  const std::uint64_t id = id_of(region);
  if (id == 0 || !key || !*key || !active()) return;
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  write({kNumber, false, id, 0, 0, bits, key, cut_length(key, kTextBytes), nullptr, 0});
}

extern "C" void ergometer_text_(ergometer_region region, const char* key, const char* value) {
  const std::uint64_t id = id_of(region);
  if (id == 0 || !key || !*key || !value || !active()) return;
  write({kString, false, id, 0, 0, 0, key, cut_length(key, kTextBytes), value, cut_length(value, kValueBytes)});
}
