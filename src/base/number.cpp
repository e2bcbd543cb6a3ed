#include "base/number.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "base/text.hpp"

namespace ergometer {
namespace {
template <class T>
std::optional<T> parse(std::string_view text) {
  text = trim(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T value{};
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}
}  // namespace

std::optional<double> parse_double(std::string_view text) {
  const auto value = parse<double>(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_int(std::string_view text) { return parse<std::int64_t>(text); }

std::optional<std::uint64_t> parse_uint(std::string_view text) { return parse<std::uint64_t>(text); }

std::optional<Nanos> parse_duration(std::string_view text) {
  struct UnitName {
    std::string_view name;
    double seconds;
  };
  // Longest names first, so that "ms" is not taken for "s".
  static constexpr std::array units{UnitName{"min", 60.0}, UnitName{"ns", 1e-9}, UnitName{"us", 1e-6},
                                    UnitName{"ms", 1e-3},  UnitName{"s", 1.0},   UnitName{"h", 3600.0}};
  text = trim(text);
  for (const auto& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    const auto number = parse_double(text.substr(0, text.size() - unit.name.size()));
    if (!number || *number < 0 || *number * unit.seconds > 9e9) return std::nullopt;
    return from_seconds(*number * unit.seconds);
  }
  return std::nullopt;
}

void append_double(std::string& out, double value) {
  if (!std::isfinite(value)) return;
  std::array<char, 32> buffer;
  const auto [end, ec] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out.append(buffer.data(), end);
}

void append_int(std::string& out, std::int64_t value) {
  std::array<char, 24> buffer;
  const auto [end, ec] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out.append(buffer.data(), end);
}

std::string format_double(double value) {
  std::string out;
  append_double(out, value);
  return out;
}

}  // namespace ergometer
