#include "run_epochs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <regex>

#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "region/record.hpp"

namespace ergometer::cli {
namespace {

// libstdc++'s matcher recurses once a character, so a longer text could overflow a thread's stack.
constexpr std::size_t kLongest = 4096;

// Length of the longest beginning of `pattern` that is a valid expression: what follows it is the fault.
std::size_t valid_prefix(const std::string& pattern) {
  for (std::size_t n = pattern.size(); n > 0; --n) {
    try {
      const std::regex part(pattern.substr(0, n), std::regex::ECMAScript);
      return n;
    } catch (const std::regex_error&) {
    }
  }
  return 0;
}

const char* reason(std::regex_constants::error_type code) {
  namespace rc = std::regex_constants;
  if (code == rc::error_paren) return "a bracket ( or ) without its other half";
  if (code == rc::error_brack) return "a bracket [ or ] without its other half";
  if (code == rc::error_brace || code == rc::error_badbrace) return "a bad repetition in { }";
  if (code == rc::error_badrepeat) return "*, + or ? with nothing to repeat";
  if (code == rc::error_escape) return "an unknown escape after \\";
  if (code == rc::error_backref) return "a reference to a group that is not there";
  if (code == rc::error_range || code == rc::error_ctype) return "a bad range or class in [ ]";
  return "not an ECMAScript regular expression";
}

}  // namespace

struct EpochMarks::State {
  std::regex pattern;
  EpochAt at = EpochAt::start;

  std::mutex mutex;
  int fd = -1;
  int pid = 0;
  std::uint64_t slots = 0;            // records written, the header included
  std::optional<std::uint64_t> open;  // slot of the open epoch
  std::optional<std::int64_t> last;   // number of the newest epoch
  MonoTime previous;                  // end of the last epoch, or the command's start

  ~State() {
    if (fd >= 0) ::close(fd);
  }
  // Full disks lose marks and nothing else.
  void write_at(const void* bytes, std::size_t n, std::uint64_t offset) const {
    if (fd >= 0) [[maybe_unused]]
      const auto written = ::pwrite(fd, bytes, n, static_cast<off_t>(offset));
  }
  std::uint64_t add_epoch(std::int64_t index, MonoTime begin, std::int64_t end_ns) {
    marker::Record record{};
    record.kind = marker::kBegin;
    record.length = 5;
    std::memcpy(record.text, "epoch", 5);
    record.tid = pid;
    record.id = slots;
    record.t_ns = to_ns(begin);
    record.index = index;
    record.value.end_ns = end_ns;
    write_at(&record, sizeof record, slots * sizeof record);
    return slots++;
  }
  void close_epoch(MonoTime t) {
    if (!open) return;
    const std::int64_t end_ns = to_ns(t);
    write_at(&end_ns, sizeof end_ns, *open * marker::kRecordBytes + offsetof(marker::Record, value));
    open.reset();
  }
};

EpochMarks::EpochMarks(std::unique_ptr<State> state) : state_(std::move(state)) {}
EpochMarks::~EpochMarks() = default;

Result<std::unique_ptr<EpochMarks>> EpochMarks::create(const std::string& pattern, EpochAt at) {
  auto state = std::make_unique<State>();
  state->at = at;
  try {
    state->pattern = std::regex(pattern, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--epoch-regex \"{}\": {}, at character {}", pattern, reason(error.code()),
                            valid_prefix(pattern) + 1),
                R"(for example: --epoch-regex 'Epoch ([0-9]+)')");
  }
  return std::unique_ptr<EpochMarks>(new EpochMarks(std::move(state)));
}

Result<void> EpochMarks::begin(const std::filesystem::path& run_dir, int pid, MonoTime t) {
  std::lock_guard lock(state_->mutex);
  const auto folder = run_dir / "markers";
  const auto file = folder / fmt::format("epochs-{}-{}.erg", pid, to_ns(t));
  ::mkdir(folder.c_str(), 0777);
  state_->fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (state_->fd < 0) return tl::unexpected(errno_error("create", file, errno));
  marker::Header header{};
  std::memcpy(header.magic, marker::kMagic, sizeof header.magic);
  header.record_bytes = marker::kRecordBytes;
  header.pid = pid;
  header.rank = launcher_rank(current_environment());
  header.created_ns = to_ns(t);
  state_->write_at(&header, sizeof header, 0);
  state_->pid = pid;
  state_->slots = 1;
  state_->previous = t;
  return {};
}

void EpochMarks::line(std::string_view text, MonoTime t) {
  text = text.substr(0, kLongest);
  State& s = *state_;
  std::match_results<std::string_view::const_iterator> match;
  try {
    if (!std::regex_search(text.begin(), text.end(), match, s.pattern)) return;
  } catch (const std::regex_error&) {  // too complex for this line
    return;
  }
  const auto number = match.size() > 1 && match[1].matched ? parse_int(match[1].str()) : std::nullopt;
  std::lock_guard lock(s.mutex);
  if (number && s.last == number) return;
  const std::int64_t k = number && *number >= 0 ? *number : s.last.value_or(-1) + 1;
  s.last = k;
  if (s.at == EpochAt::start) {
    s.close_epoch(t);
    s.open = s.add_epoch(k, t, 0);
  } else {
    s.add_epoch(k, s.previous, to_ns(t));
    s.previous = t;
  }
}

void EpochMarks::end(MonoTime t) {
  std::lock_guard lock(state_->mutex);
  state_->close_epoch(t);
}

}  // namespace ergometer::cli
