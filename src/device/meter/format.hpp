// How the lines of a power meter are read: which column is the time, which the power, in which clock and unit. Pure;
// used by the meter backend, by check-meter and by fuzzing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ergometer::meter {

// What the user may say about a meter; empty means: as the file says.
struct Wishes {
  std::string column;  // name of the power column
  std::string unit;    // "W", "mW", "kW"
  std::string time;    // "wall", "monotonic", "arrival"
};

enum class Time {
  arrival,    // none in the file: the moment at which the line is seen
  wall,       // seconds, ms, us or ns since 1970, or ISO 8601
  monotonic,  // CLOCK_MONOTONIC of this machine
};

struct Format {
  char separator = ',';
  Time time = Time::arrival;
  std::size_t time_column = 0, power_column = 0;
  double time_unit_ns = 0;  // 0: by size, for wall time
  double to_watts = 1;
  bool has_header = true;
};

// The format by a file's first line. Without a header the line is TIME,POWER or POWER alone, and the unit must be
// wished. Errors: invalid_argument, with what to set: no power column, no unit, a unit that contradicts the header's.
[[nodiscard]] Result<Format> format_of(std::string_view first_line, const Wishes& wishes);

struct Line {
  std::optional<std::int64_t> stamp_ns;  // unset for arrival
  std::optional<double> power_w;         // unset: blank, 0 or less, or beyond any node (100 kW)
};
// nullopt for a line that is none of the format: too short, or its time is no time.
[[nodiscard]] std::optional<Line> parse_line(std::string_view line, const Format& format);

// "2026-01-31T12:00:00.25Z", "2026-01-31 12:00:00+01:00"; without a zone it is this machine's local time.
[[nodiscard]] std::optional<std::int64_t> parse_iso_time(std::string_view text);

// One line of a command: a number, with an optional unit behind it ("312.5", "312500 mW"). `to_watts` is for a bare
// number. Bounds as in Line.
[[nodiscard]] std::optional<double> parse_watts(std::string_view line, double to_watts);
// 1, 1e-3, 1e3 for W, mW, kW.
[[nodiscard]] std::optional<double> watts_per(std::string_view unit);

}  // namespace ergometer::meter
