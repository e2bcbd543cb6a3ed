#include "report/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ergometer {
namespace {

// `digits` significant digits without exponent; 0 decimals from 10^(digits-1) on.
std::string significant(double value, int digits) {
  const double magnitude = std::abs(value);
  const int before = magnitude >= 1 ? static_cast<int>(std::floor(std::log10(magnitude))) + 1 : 1;
  return fmt::format("{:.{}f}", value, std::max(0, digits - before));
}

}  // namespace

std::string with_unit(double value, std::string_view unit, int digits) {
  if (!std::isfinite(value)) return kMissing;
  if (value == 0) return fmt::format("0 {}", unit);
  static constexpr std::array<std::pair<double, const char*>, 6> prefixes{
      {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1.0, ""}, {1e-3, "m"}}};
  const double rounding = 1 - 0.5 * std::pow(10.0, -digits);  // 999.96 is 1.000 k
  for (const auto& [scale, prefix] : prefixes)
    if (std::abs(value) >= scale * rounding)
      return fmt::format("{} {}{}", significant(value / scale, digits), prefix, unit);
  return fmt::format("{} m{}", significant(value * 1e3, digits), unit);
}

std::string with_unit(const std::optional<double>& value, std::string_view unit, int digits) {
  return value ? with_unit(*value, unit, digits) : std::string(kMissing);
}

std::string energy_text(double joules) {
  return fmt::format("{} ({})", with_unit(joules, "J"), with_unit(joules / 3600.0, "Wh"));
}

std::string seconds_text(double s) {
  if (!std::isfinite(s)) return kMissing;
  return fmt::format("{:.{}f}", s, s < 10 ? 3 : (s < 100 ? 2 : 1));
}

std::string duration_text(double s) {
  if (!std::isfinite(s)) return kMissing;
  if (s < 600) return seconds_text(s) + " s";
  const auto whole = static_cast<long long>(s + 0.5);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min {:02} s", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string bytes_text(double bytes) {
  if (!std::isfinite(bytes)) return kMissing;
  static constexpr std::array<const char*, 6> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t i = 0;
  while (std::abs(bytes) >= 1024 && i + 1 < units.size()) {
    bytes /= 1024;
    ++i;
  }
  return i == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{} {}", significant(bytes, 3), units[i]);
}

std::string percent_text(double ratio) {
  if (!std::isfinite(ratio)) return kMissing;
  const double percent = 100 * ratio;
  const bool whole = std::abs(percent - std::round(percent)) < 0.05;
  return whole ? fmt::format("{:.0f} %", percent) : fmt::format("{:.1f} %", percent);
}

std::string error_text(double value, double truth) {
  const double percent = 100 * (value - truth) / truth;
  if (std::abs(percent) >= 9.95) return fmt::format("{:+.0f} %", percent);
  return fmt::format("{:+.1f} %", percent);
}

}  // namespace ergometer
