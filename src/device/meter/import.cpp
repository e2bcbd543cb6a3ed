#include "device/meter/import.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.hpp"
#include "base/text.hpp"

namespace ergometer::meter {

Result<Imported> read_meter_file(const std::string& path, const Wishes& wishes,
                                 const std::function<MonoTime(WallTime)>& to_mono) {
  constexpr std::size_t kMostBytes = 1u << 30;
  const auto text = read_file(path, kMostBytes);
  if (!text) return tl::unexpected(text.error());
  std::optional<Format> format;
  Imported out;
  for (const auto raw : split(*text, '\n')) {
    const auto line = trim(raw);
    if (line.empty()) continue;
    if (!format) {
      const auto found = format_of(line, wishes);
      if (!found) return fail(found.error().code, path + ": " + found.error().message, found.error().hint);
      if (found->time == Time::arrival)
        return fail(ErrorCode::invalid_argument, path + " has no times, so its readings cannot be placed in a run",
                    "let the meter's program write a column time_s, or follow the file while the run goes on");
      format = *found;
      if (format->has_header) continue;
    }
    const auto parsed = parse_line(line, *format);
    if (!parsed) {
      ++out.unreadable;
      continue;
    }
    if (!parsed->power_w) ++out.refused;
    const auto t = format->time == Time::monotonic ? mono_ns(*parsed->stamp_ns) : to_mono(wall_ns(*parsed->stamp_ns));
    out.rows.push_back({t, Nanos{0}, {parsed->power_w}});
  }
  if (out.rows.empty()) return fail(ErrorCode::invalid_argument, path + " holds no row of a meter");
  std::ranges::stable_sort(out.rows, {}, &Row::t);
  return out;
}

}  // namespace ergometer::meter
