// Bars and sparklines of a terminal: small pictures made of block characters. Used by the text report.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace ergometer {

// One character a value, from the lowest block (0 or less) to the full one (`highest`); a blank where there is none, so
// that a gap is never drawn over. Empty if no value is there or `highest` is not above 0.
[[nodiscard]] std::string sparkline(std::span<const std::optional<double>> values, double highest);
// A bar of `share` (0..1) of `width` characters, in eighths; at least a sliver for what is above 0. "" for 0 or no share.
[[nodiscard]] std::string bar(const std::optional<double>& share, std::size_t width);

}  // namespace ergometer
