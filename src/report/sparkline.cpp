#include "report/sparkline.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace ergometer {
namespace {

// U+2581 to U+2588, lower blocks; U+258F to U+2588, left blocks.
constexpr std::array kLower{"\xE2\x96\x81", "\xE2\x96\x82", "\xE2\x96\x83", "\xE2\x96\x84",
                            "\xE2\x96\x85", "\xE2\x96\x86", "\xE2\x96\x87", "\xE2\x96\x88"};
constexpr std::array kLeft{"\xE2\x96\x8F", "\xE2\x96\x8E", "\xE2\x96\x8D", "\xE2\x96\x8C",
                           "\xE2\x96\x8B", "\xE2\x96\x8A", "\xE2\x96\x89", "\xE2\x96\x88"};

}  // namespace

std::string sparkline(std::span<const std::optional<double>> values, double highest) {
  std::string out;
  bool any = false;
  for (const auto& value : values) {
    if (!value || !std::isfinite(*value)) {
      out += ' ';
      continue;
    }
    any = true;
    const double level = std::clamp(*value / highest, 0.0, 1.0) * static_cast<double>(kLower.size());
    out += kLower[std::min(kLower.size() - 1, static_cast<std::size_t>(std::max(0.0, std::ceil(level) - 1)))];
  }
  return any && highest > 0 ? out : "";
}

std::string bar(const std::optional<double>& share, std::size_t width) {
  if (!share || !(*share > 0)) return "";
  const double eighths = std::min(*share, 1.0) * static_cast<double>(width * kLeft.size());
  const auto whole = std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(eighths)));
  std::string out;
  for (std::size_t i = 0; i < whole / kLeft.size(); ++i) out += kLeft.back();
  if (const auto rest = whole % kLeft.size()) out += kLeft[rest - 1];
  return out;
}

}  // namespace ergometer
