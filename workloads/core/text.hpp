// Small text functions without any locale: numbers from text, and the nearest of several names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ergometer::workload {

[[nodiscard]] std::string_view trim(std::string_view text);
// ASCII letters only; for comparing names.
[[nodiscard]] std::string lower(std::string_view text);

// The whole text must be one number; "nan" and "inf" are none.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);

// "2019-01-31 23:00:00" (also with 'T', without seconds or without the time; 'Z' and "+01:00" understood, otherwise
// UTC) or a whole number of seconds since 1970; in seconds since 1970.
[[nodiscard]] std::optional<std::int64_t> parse_time(std::string_view text);
// "2019-01-31 23:00:00", UTC.
[[nodiscard]] std::string format_time(std::int64_t seconds);

// For people: three significant digits, and whole from 100 on; a small value never reads as 0.
[[nodiscard]] std::string short_number(double value);

// The name with the smallest edit distance, letter case aside; "" of none.
[[nodiscard]] std::string nearest(std::string_view name, const std::vector<std::string>& names);

}  // namespace ergometer::workload
