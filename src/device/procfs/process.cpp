#include "device/procfs/process.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer::procfs {
namespace {

Result<std::string> read_process_file(const HostRoot& root, int pid, const char* name) {
  return read_file(root.path(fmt::format("/proc/{}/{}", pid, name)), 1 << 16);
}

tl::unexpected<Error> damaged(const HostRoot& root, int pid, const char* name) {
  return fail(ErrorCode::corrupt, root.path(fmt::format("/proc/{}/{}", pid, name)).string() + " makes no sense");
}

// The number after "KEY:" on a line of its own, with or without " kB" behind.
std::optional<double> keyed_number(std::string_view text, std::string_view key) {
  for (const auto line : split(text, '\n')) {
    if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") continue;
    auto value = trim(line.substr(key.size() + 1));
    const bool kilo = value.ends_with(" kB");
    if (kilo) value.remove_suffix(3);
    const auto number = parse_uint(value);
    if (!number) return std::nullopt;
    return static_cast<double>(*number) * (kilo ? 1024 : 1);
  }
  return std::nullopt;
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text, double ticks_per_s, double page_bytes) {
  const auto name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  // Numbers after the state, by their position there: 0 ppid, 10 utime, 11 stime, 12 cutime, 13 cstime, 16 threads,
  // 18 start time, 20 resident pages.
  std::array<std::int64_t, 21> numbers{};
  auto rest = trim(text.substr(name_end + 1));
  const auto state_end = rest.find(' ');
  if (state_end == std::string_view::npos) return std::nullopt;
  const auto state = rest.substr(0, state_end);
  rest.remove_prefix(state_end + 1);
  for (auto& number : numbers) {
    const auto end = rest.find(' ');
    // Sizes without limit do not fit a signed number; none of them is used here.
    const auto value = parse_uint(rest.substr(0, end));
    const auto negative = value ? std::nullopt : parse_int(rest.substr(0, end));
    if (!value && !negative) return std::nullopt;
    number = value ? static_cast<std::int64_t>(*value) : *negative;
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  ProcessStat out;
  out.zombie = state == "Z" || state == "X";
  out.ppid = static_cast<int>(numbers[0]);
  out.own_s = static_cast<double>(numbers[10] + numbers[11]) / ticks_per_s;
  out.children_s = static_cast<double>(numbers[12] + numbers[13]) / ticks_per_s;
  out.threads = numbers[16];
  out.start_ticks = static_cast<std::uint64_t>(numbers[18]);
  out.rss_bytes = static_cast<double>(numbers[20]) * page_bytes;
  return out;
}

std::optional<ProcessIo> parse_process_io(std::string_view text) {
  const auto read = keyed_number(text, "read_bytes"), written = keyed_number(text, "write_bytes");
  if (!read || !written) return std::nullopt;
  return ProcessIo{*read, *written};
}

std::optional<double> parse_pss(std::string_view text) { return keyed_number(text, "Pss"); }

std::vector<int> process_ids(const HostRoot& root) {
  std::vector<int> ids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(root.path("/proc").c_str()), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    const auto number = parse_uint(entry->d_name);
    if (number && *number > 0 && *number <= INT32_MAX) ids.push_back(static_cast<int>(*number));
  }
  return ids;
}

Result<ProcessStat> read_process_stat(const HostRoot& root, int pid) {
  static const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  static const double page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  const auto text = read_process_file(root, pid, "stat");
  if (!text) return tl::unexpected(text.error());
  if (const auto stat = parse_process_stat(*text, ticks, page)) return *stat;
  return damaged(root, pid, "stat");
}

Result<ProcessIo> read_process_io(const HostRoot& root, int pid) {
  const auto text = read_process_file(root, pid, "io");
  if (!text) return tl::unexpected(text.error());
  if (const auto io = parse_process_io(*text)) return *io;
  return damaged(root, pid, "io");
}

Result<ProcessIo> read_children_io(const HostRoot& root, int pid) {
  // Threads first: what they write in between then counts as a child's for a moment, never as negative.
  ProcessIo own;
  const auto folder = fmt::format("/proc/{}/task", pid);
  for (const auto& thread : list_dir(root.path(folder))) {
    const auto text = read_file(root.path(fmt::format("{}/{}/io", folder, thread)), 4096);
    const auto io = text ? parse_process_io(*text) : std::nullopt;
    if (!io) continue;
    own.read_bytes += io->read_bytes;
    own.written_bytes += io->written_bytes;
  }
  auto all = read_process_io(root, pid);
  if (!all) return all;
  return ProcessIo{std::max(all->read_bytes - own.read_bytes, 0.0),
                   std::max(all->written_bytes - own.written_bytes, 0.0)};
}

Result<double> read_pss(const HostRoot& root, int pid) {
  const auto text = read_process_file(root, pid, "smaps_rollup");
  if (!text && text.error().code == ErrorCode::io) return 0.0;  // ESRCH: no memory left
  if (!text) return tl::unexpected(text.error());
  if (trim(*text).empty()) return 0.0;
  if (const auto pss = parse_pss(*text)) return *pss;
  return damaged(root, pid, "smaps_rollup");
}

}  // namespace ergometer::procfs
