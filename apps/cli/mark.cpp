// ergometer mark begin|end NAME: markers from a shell script. Each call appends to a marker file of the shell that
// calls it (region/record.hpp); the reader matches begin and end by name.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "region/record.hpp"

namespace ergometer::cli {
namespace {

namespace fs = std::filesystem;
using marker::Record;

struct Mark {
  marker::Kind kind = marker::kBegin;
  std::string name;
  std::optional<std::int64_t> index;
  std::vector<std::string> set;
};

std::string hostname() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return file_name_of(name.data());
}

std::uint64_t start_ticks(pid_t pid) {
  const auto stat = read_file(fmt::format("/proc/{}/stat", pid), 4096);
  if (!stat || stat->rfind(')') == std::string::npos) return 0;
  const auto fields = split(std::string_view(*stat).substr(stat->rfind(')') + 1), ' ');
  return fields.size() < 21 ? 0 : parse_uint(fields[20]).value_or(0);
}

// Appends `record` with `text` in it and `rest` in the records that continue it.
void append_record(std::string& out, Record record, std::string_view text, std::string_view rest) {
  record.length = static_cast<std::uint8_t>(std::min<std::size_t>(text.size(), marker::kTextBytes));
  std::memcpy(record.text, text.data(), record.length);
  record.more = static_cast<std::uint8_t>((rest.size() + marker::kTextBytes - 1) / marker::kTextBytes);
  out.append(reinterpret_cast<const char*>(&record), sizeof record);
  for (; !rest.empty(); rest.remove_prefix(std::min<std::size_t>(rest.size(), marker::kTextBytes))) {
    Record part{};
    part.kind = marker::kText;
    part.tid = record.tid;
    part.length = static_cast<std::uint8_t>(std::min<std::size_t>(rest.size(), marker::kTextBytes));
    std::memcpy(part.text, rest.data(), part.length);
    out.append(reinterpret_cast<const char*>(&part), sizeof part);
  }
}

std::string records_of(const Mark& mark, pid_t shell, MonoTime now) {
  std::string out;
  Record record{};
  record.kind = mark.kind;
  record.tid = shell;
  record.t_ns = to_ns(now);
  record.index = mark.index.value_or(marker::kNoIndex);
  const std::string_view name = std::string_view(mark.name).substr(0, marker::kNameBytes);
  append_record(out, record, name, name.substr(std::min<std::size_t>(name.size(), marker::kTextBytes)));
  for (const std::string& pair : mark.set) {
    const auto equals = pair.find('=');
    const std::string_view key = std::string_view(pair).substr(0, equals);
    const std::string_view value = std::string_view(pair).substr(equals + 1, marker::kValueBytes);
    Record attribute{};
    attribute.tid = shell;
    const auto number = parse_double(value);
    attribute.kind = number ? marker::kNumber : marker::kString;
    if (number) attribute.value.number = *number;
    append_record(out, attribute, key, number ? std::string_view{} : value);
  }
  return out;
}

std::string header_of(pid_t shell, MonoTime now) {
  marker::Header header{};
  std::memcpy(header.magic, marker::kMagic, sizeof marker::kMagic);
  header.record_bytes = marker::kRecordBytes;
  header.pid = shell;
  header.rank = launcher_rank(current_environment());
  header.flags = marker::kByName;
  header.created_ns = to_ns(now);
  header.start_ticks = start_ticks(shell);
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

// Under a lock, so that marks of one shell's background jobs do not mix; after half a record that a full disk left, the
// file is first cut back to whole ones.
Result<void> append_mark(const fs::path& file, const Mark& mark) {
  const pid_t shell = ::getppid();
  const MonoTime now = SystemClock().now();
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return tl::unexpected(errno_error("open", file, errno));
  const std::unique_ptr<const int, void (*)(const int*)> closer(&fd, [](const int* open_fd) { ::close(*open_fd); });
  struct stat st {};
  if (::flock(fd, LOCK_EX) != 0 || ::fstat(fd, &st) != 0) return tl::unexpected(errno_error("lock", file, errno));
  const off_t whole = st.st_size - st.st_size % marker::kRecordBytes;
  if (whole != st.st_size && ::ftruncate(fd, whole) != 0) return tl::unexpected(errno_error("shorten", file, errno));
  const std::string bytes = (whole == 0 ? header_of(shell, now) : std::string()) + records_of(mark, shell, now);
  const ssize_t written = ::write(fd, bytes.data(), bytes.size());
  if (written == static_cast<ssize_t>(bytes.size())) return {};
  const Error error = errno_error("write", file, written < 0 ? errno : ENOSPC);
  if (::ftruncate(fd, whole) != 0) return tl::unexpected(errno_error("shorten", file, errno));
  return tl::unexpected(error);
}

// A script must also run when it is not measured, and when its markers cannot be kept.
int write_mark(const Mark& mark) {
  const char* run = std::getenv("ERGOMETER_RUN");
  if (!run || !*run) return 0;
  const fs::path folder = fs::path(run) / "markers";
  ::mkdir(folder.c_str(), 0777);
  const auto appended = append_mark(folder / fmt::format("{}-shell-{}.erg", hostname(), ::getppid()), mark);
  return appended ? 0 : report_error(appended.error(), 0);
}

void add_word(CLI::App& mark_app, Context& context, const char* word, const char* description, marker::Kind kind) {
  const auto mark = std::make_shared<Mark>();
  mark->kind = kind;
  CLI::App* app = mark_app.add_subcommand(word, description);
  const CLI::Validator not_empty([](std::string& text) { return text.empty() ? "a name is needed" : std::string(); },
                                 "");
  app->add_option("NAME", mark->name, "The region's name")->required()->check(not_empty);
  if (kind == marker::kBegin)
    app->add_option("--index", mark->index, "Its index, shown as NAME[N]")->check(CLI::NonNegativeNumber);
  const CLI::Validator pair(
      [](std::string& text) {
        const auto equals = text.find('=');
        return equals == std::string::npos || equals == 0 ? "\"" + text + "\" is not KEY=VALUE" : std::string();
      },
      "KEY=VALUE");
  app->add_option("--set", mark->set, "An attribute of the region, such as loss=0.25")
      ->check(pair)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app->callback([mark, &context] { context.exit_code = write_mark(*mark); });
}

}  // namespace

void add_mark(CLI::App& app, Context& context) {
  CLI::App* mark = app.add_subcommand("mark", "Begin or end a region from a shell script");
  mark->require_subcommand(1);
  add_word(*mark, context, "begin", "Begin a region inside the shell's innermost open one", marker::kBegin);
  add_word(*mark, context, "end", "End the shell's innermost open region of this name", marker::kEnd);
}

}  // namespace ergometer::cli
