// Numbers for people: readable units, few digits, missing as a dash. Used by the text report.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ergometer {

inline constexpr const char* kMissing = "\xE2\x80\x94";  // em dash

// Four significant digits and a decimal prefix (m, k, M, G): "1.440 MJ", "697.1 W", "0 J". Not for negative zero.
[[nodiscard]] std::string with_unit(double value, std::string_view unit, int digits = 4);
[[nodiscard]] std::string with_unit(const std::optional<double>& value, std::string_view unit, int digits = 4);
// "12.00 kJ (3.333 Wh)".
[[nodiscard]] std::string energy_text(double joules);
// "0.300", "12.34", "100.0": seconds for a column headed so.
[[nodiscard]] std::string seconds_text(double s);
// "0.3 s", "100.0 s", "1 h 02 min 03 s".
[[nodiscard]] std::string duration_text(double s);
// "16.0 GiB".
[[nodiscard]] std::string bytes_text(double bytes);
// 0.5 -> "50 %", 0.9876 -> "98.8 %".
[[nodiscard]] std::string percent_text(double ratio);
// How far `value` is from `truth`, which must not be 0: "+41 %", "-2.3 %".
[[nodiscard]] std::string error_text(double value, double truth);

}  // namespace ergometer
