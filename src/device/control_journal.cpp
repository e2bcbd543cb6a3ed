#include "device/control_journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kSchema = "ergometer.control/1";
constexpr std::size_t kMaxBytes = 64 << 20;
constexpr std::array<const char*, 3> kUnits{"W", "Hz", "word"};  // by ControlUnit

// Free text in one field: no tab, no line end.
std::string field(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return out;
}

std::string header_text(const Journal& journal) {
  std::string text = fmt::format("{}\nowner\t{}\t{}\nsince\t{}\nboot\t{}\nnvml\t{}\ncommand\t{}\n", kSchema,
                                 journal.owner_pid, field(journal.owner), journal.since_unix_s, field(journal.boot_id),
                                 field(journal.nvml_path), field(journal.site_command));
  for (const auto& item : journal.items)
    text += fmt::format("item\t{}\t{}\t{}\t{}\t{}\n", field(item.name), field(item.backend), field(item.device_id),
                        kUnits[static_cast<std::size_t>(item.unit)], item.found ? to_text(*item.found) : "");
  return text;
}

Error corrupt(std::size_t line, std::string_view text) {
  return {ErrorCode::corrupt,
          fmt::format("line {} of the control journal is not understood: \"{}\"", line, text.substr(0, 80)),
          "look at it, set the values that it names by hand, and remove it"};
}

bool add_item(Journal& journal, const std::vector<std::string_view>& fields) {
  if (fields.size() != 6) return false;
  const auto unit = std::ranges::find(kUnits, fields[4]);
  if (unit == kUnits.end()) return false;
  JournalItem item;
  item.name = fields[1];
  item.backend = fields[2];
  item.device_id = fields[3];
  item.unit = static_cast<ControlUnit>(unit - kUnits.begin());
  if (!fields[5].empty()) {
    item.found = parse_value(fields[5], item.unit);
    if (!item.found) return false;
  }
  journal.items.push_back(std::move(item));
  return true;
}

JournalItem* item_at(Journal& journal, std::string_view number) {
  const auto index = parse_uint(number);
  return index && *index < journal.items.size() ? &journal.items[*index] : nullptr;
}

bool add_line(Journal& journal, std::string_view line) {
  const auto fields = split(line, '\t');
  const auto is = [&](std::string_view word, std::size_t count) { return fields[0] == word && fields.size() == count; };
  if (fields[0] == "item") return add_item(journal, fields);
  if (is("keep", 1)) return journal.kept = true;
  if (is("owner", 3)) {
    const auto pid = parse_int(fields[1]);
    journal.owner_pid = static_cast<int>(pid.value_or(0));
    journal.owner = fields[2];
    return pid.has_value();
  }
  if (is("since", 2)) {
    const auto since = parse_int(fields[1]);
    journal.since_unix_s = since.value_or(0);
    return since.has_value();
  }
  if (is("boot", 2)) return journal.boot_id = fields[1], true;
  if (is("nvml", 2)) return journal.nvml_path = fields[1], true;
  if (is("command", 2)) return journal.site_command = fields[1], true;
  if (is("set", 3)) {
    auto* item = item_at(journal, fields[1]);
    const auto value = item ? parse_value(fields[2], item->unit) : std::nullopt;
    if (value) item->set.push_back(*value);
    return value.has_value();
  }
  if (is("settled", 2)) {
    auto* item = item_at(journal, fields[1]);
    if (item) item->settled = true;
    return item != nullptr;
  }
  return false;
}

int sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  return error == EINVAL ? 0 : error;  // a file system that has nothing to do
}

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return ::fdatasync(fd) == 0 ? 0 : errno;
}

}  // namespace

bool JournalItem::changed() const {
  return !settled && std::ranges::any_of(set, [this](const auto& value) { return value != found; });
}

bool Journal::changed() const { return std::ranges::any_of(items, &JournalItem::changed); }

Result<Journal> parse_journal(std::string_view text) {
  Journal journal;
  // What stands behind the last line end was never finished, so its step was never begun.
  text = text.substr(0, text.rfind('\n') == std::string_view::npos ? 0 : text.rfind('\n'));
  std::size_t number = 0;
  for (const auto line : split(text, '\n')) {
    ++number;
    if (number == 1 ? line != kSchema : !add_line(journal, line)) return tl::unexpected(corrupt(number, line));
  }
  return journal;
}

Result<Journal> read_journal(const fs::path& file) {
  struct stat st {};
  if (::lstat(file.c_str(), &st) != 0) return tl::unexpected(errno_error("read", file, errno));
  // Values that are written to devices must not come from a stranger.
  if (!S_ISREG(st.st_mode) || (st.st_uid != ::geteuid() && st.st_uid != 0))
    return fail(ErrorCode::permission_denied,
                fmt::format("{} belongs to another user (id {})", file.string(), st.st_uid),
                "let that user restore it");
  const auto text = read_file(file, kMaxBytes);
  if (!text) return tl::unexpected(text.error());
  auto journal = parse_journal(*text);
  if (!journal) journal.error().message += " (" + file.string() + ")";
  return journal;
}

Result<JournalWriter> JournalWriter::create(const fs::path& file, Journal journal) {
  // Complete or not there at all: written aside, linked into place without replacing anything.
  const fs::path aside = file.string() + ".new";  // ours alone: the caller holds the lock
  ::unlink(aside.c_str());
  const int fd = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return tl::unexpected(errno_error("create", aside, errno));
  JournalWriter writer(file, fd, std::move(journal));
  int error = write_all(fd, header_text(writer.journal_));
  if (error == 0 && ::link(aside.c_str(), file.c_str()) != 0) error = errno;
  ::unlink(aside.c_str());
  if (error == 0) error = sync_folder(file.parent_path());
  if (error != 0) return tl::unexpected(errno_error("write the journal", file, error));
  return writer;
}

Result<JournalWriter> JournalWriter::open(const fs::path& file) {
  auto journal = read_journal(file);
  if (!journal) return tl::unexpected(journal.error());
  const int fd = ::open(file.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return tl::unexpected(errno_error("write", file, errno));
  JournalWriter writer(file, fd, std::move(*journal));
  // A cut line goes, or the next would be a part of it.
  const auto text = read_file(file, kMaxBytes);
  const auto whole = text ? text->rfind('\n') + 1 : 0;
  if (!text || (whole != text->size() && ::ftruncate(fd, static_cast<off_t>(whole)) != 0))
    return tl::unexpected(errno_error("write", file, errno));
  return writer;
}

JournalWriter::JournalWriter(JournalWriter&& other) noexcept
    : file_(std::move(other.file_)), fd_(std::exchange(other.fd_, -1)), journal_(std::move(other.journal_)) {}

JournalWriter::~JournalWriter() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> JournalWriter::append(const std::string& line) {
  struct stat before {};
  if (::fstat(fd_, &before) != 0) return tl::unexpected(errno_error("inspect", file_, errno));
  const int error = write_all(fd_, line + "\n");
  if (error == 0) return {};
  // Half a line (the disk is full) must not become the beginning of the next.
  if (::ftruncate(fd_, before.st_size) != 0) return tl::unexpected(errno_error("shorten", file_, errno));
  return tl::unexpected(errno_error("write the journal", file_, error));
}

Result<void> JournalWriter::will_set(std::size_t item, const ControlValue& value) {
  auto& values = journal_.items.at(item).set;
  if (std::ranges::find(values, value) != values.end()) return {};
  if (auto written = append(fmt::format("set\t{}\t{}", item, to_text(value))); !written) return written;
  values.push_back(value);
  return {};
}

Result<void> JournalWriter::settled(std::size_t item) {
  if (auto written = append(fmt::format("settled\t{}", item)); !written) return written;
  journal_.items.at(item).settled = true;
  return {};
}

Result<void> JournalWriter::keep() {
  if (auto written = append("keep"); !written) return written;
  journal_.kept = true;
  return {};
}

Result<void> JournalWriter::remove() {
  if (::unlink(file_.c_str()) != 0 && errno != ENOENT) return tl::unexpected(errno_error("remove", file_, errno));
  if (const int error = sync_folder(file_.parent_path()); error != 0)
    return tl::unexpected(errno_error("close the journal", file_, error));
  return {};
}

}  // namespace ergometer
