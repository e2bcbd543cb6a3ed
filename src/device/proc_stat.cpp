#include "device/proc_stat.hpp"

#include <algorithm>
#include <cstdint>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

// Columns: user nice system idle iowait irq softirq steal guest guest_nice; old kernels end earlier.
std::optional<CpuTimes> parse_times(std::string_view numbers, double ticks_per_s) {
  std::uint64_t busy = 0, total = 0;
  int column = 0;
  for (const auto part : split(trim(numbers), ' ')) {
    if (part.empty()) continue;
    const auto ticks = parse_uint(part);
    if (!ticks) return std::nullopt;
    if (column < 8) {
      total += *ticks;
      if (column != 3 && column != 4) busy += *ticks;
    }
    ++column;
  }
  if (column < 4) return std::nullopt;
  return CpuTimes{static_cast<double>(busy) / ticks_per_s, static_cast<double>(total) / ticks_per_s};
}

}  // namespace

std::optional<ProcStat> parse_proc_stat(std::string_view text, double ticks_per_s) {
  ProcStat out;
  bool found = false;
  while (text.starts_with("cpu")) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const auto times = parse_times(line.substr(blank), ticks_per_s);
    if (!times) continue;
    if (blank == 3) {
      out.all = *times;
      found = true;
    } else if (const auto cpu = parse_uint(line.substr(3, blank - 3)); cpu && *cpu < 1 << 16) {
      out.cpus[static_cast<int>(*cpu)] = *times;
    }
  }
  if (!found) return std::nullopt;
  return out;
}

}  // namespace ergometer
