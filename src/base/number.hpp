// Numbers to and from text without any locale: what a host program sets with setlocale never changes a file.
// Used wherever text meets numbers; std::stod, std::to_string, printf and iostreams are not used for numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"

namespace ergometer {

[[nodiscard]] inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// The whole text must be one finite decimal number (surrounding blanks allowed); otherwise nullopt.
[[nodiscard]] std::optional<double> parse_double(std::string_view text);
[[nodiscard]] std::optional<std::int64_t> parse_int(std::string_view text);
[[nodiscard]] std::optional<std::uint64_t> parse_uint(std::string_view text);

// A duration with a unit: "100ms", "5s", "20us", "2min", "1h". A bare number is refused. Must be >= 0.
[[nodiscard]] std::optional<Nanos> parse_duration(std::string_view text);

// Shortest text that reads back as the same double ("1234567.5", "0.1", "1e-09"); empty if not finite, the form
// of a missing value.
[[nodiscard]] std::string format_double(double value);
void append_double(std::string& out, double value);
void append_int(std::string& out, std::int64_t value);

}  // namespace ergometer
