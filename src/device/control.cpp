#include "device/control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

struct Suffix {
  const char* text;
  double scale;
};
constexpr std::array<Suffix, 3> kWatts{{{"mw", 1e-3}, {"kw", 1e3}, {"w", 1}}};
constexpr std::array<Suffix, 4> kHertz{{{"khz", 1e3}, {"mhz", 1e6}, {"ghz", 1e9}, {"hz", 1}}};

template <std::size_t N>
std::optional<double> number_with(std::string_view text, const std::array<Suffix, N>& suffixes) {
  const std::string small = lower(trim(text));
  for (const auto& suffix : suffixes) {
    if (!small.ends_with(suffix.text)) continue;
    const auto number =
        parse_double(trim(std::string_view(small).substr(0, small.size() - std::string_view(suffix.text).size())));
    if (!number) return std::nullopt;
    // A division keeps what people write exact: 1200 kHz is 1200000 Hz, 1 mW is 0.001 W.
    return suffix.scale < 1 ? *number / std::round(1 / suffix.scale) : *number * suffix.scale;
  }
  return std::nullopt;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace

Result<void> Control::reset() { return fail(ErrorCode::unsupported, info_.name + " has no reset"); }

std::string_view device_of(std::string_view name) {
  const auto slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
}

std::string_view knob_of(std::string_view name) {
  const auto slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

ControlUnit unit_of(const ControlValue& value) { return static_cast<ControlUnit>(value.index()); }

double number_of(const ControlValue& value) {
  if (const auto* watts = std::get_if<Watts>(&value)) return watts->value;
  if (const auto* hertz = std::get_if<Hertz>(&value)) return hertz->value;
  return 0;
}

ControlValue make_value(ControlUnit unit, double number) {
  return unit == ControlUnit::hertz ? ControlValue(Hertz(number)) : ControlValue(Watts(number));
}

std::string to_text(const ControlValue& value) {
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  if (unit_of(value) == ControlUnit::watts) return format_double(number_of(value)) + " W";
  const double hertz = number_of(value);
  // In MHz where that reads back as the same number.
  if (hertz / 1e6 * 1e6 == hertz) return format_double(hertz / 1e6) + " MHz";
  return format_double(hertz) + " Hz";
}

std::optional<ControlValue> parse_value(std::string_view text, ControlUnit unit) {
  std::optional<double> number;
  switch (unit) {
    case ControlUnit::word:
      return is_word(trim(text)) ? std::optional(ControlValue(std::string(trim(text)))) : std::nullopt;
    case ControlUnit::watts:
      number = number_with(text, kWatts);
      break;
    case ControlUnit::hertz:
      number = number_with(text, kHertz);
      break;
  }
  // Nothing is set below zero, and a product may leave the range of doubles.
  if (!number || !std::isfinite(*number) || *number < 0) return std::nullopt;
  return make_value(unit, *number);
}

bool same_value(const ControlInfo& info, const ControlValue& a, const ControlValue& b) {
  if (a.index() != b.index()) return false;
  if (unit_of(a) == ControlUnit::word) return a == b;
  // Half a millihertz or a microwatt is beyond every device.
  return std::abs(number_of(a) - number_of(b)) <= info.resolution + 1e-6;
}

std::string range_text(const ControlInfo& info) {
  if (info.unit == ControlUnit::word) {
    std::vector<std::string> words;
    for (const auto& choice : info.choices) words.push_back(to_text(choice));
    return fmt::format("{}", fmt::join(words, ", "));
  }
  if (!info.choices.empty()) {
    const auto low = to_text(info.choices.front()), high = to_text(info.choices.back());
    if (info.choices.size() == 1) return low;
    return fmt::format("{} to {}, {} values", low.substr(0, low.find(' ')), high, info.choices.size());
  }
  if (info.lowest && info.highest) {
    const auto low = to_text(*info.lowest);
    return fmt::format("{} to {}", low.substr(0, low.find(' ')), to_text(*info.highest));
  }
  if (info.highest) return "at most " + to_text(*info.highest);
  return info.lowest ? "at least " + to_text(*info.lowest) : std::string();
}

std::string permission_remedy() {
  return "run it as root (sudo), give the program CAP_SYS_ADMIN, have the administrator name you in control-groups of "
         "ergometerd (docs/daemon.md), or name the site's own command for limits with --control-command "
         "(docs/controls.md)";
}

}  // namespace ergometer
