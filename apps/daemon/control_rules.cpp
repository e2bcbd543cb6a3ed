#include "daemon/control_rules.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "base/text.hpp"

namespace ergometer::daemon {
namespace {

bool fits(const AllowedControl& rule, const ControlInfo& info) {
  return ::fnmatch(rule.pattern.c_str(), info.name.c_str(), 0) == 0;
}

bool is_within(const AllowedControl& rule, const ControlValue& value) {
  const auto same_unit = [&](const std::optional<ControlValue>& bound) {
    return !bound || unit_of(*bound) == unit_of(value);
  };
  if (!same_unit(rule.lowest) || !same_unit(rule.highest)) return false;
  return (!rule.lowest || number_of(value) >= number_of(*rule.lowest)) &&
         (!rule.highest || number_of(value) <= number_of(*rule.highest));
}

std::string text_of(const AllowedControl& rule) {
  if (!rule.lowest || !rule.highest) return rule.pattern;
  return fmt::format("{} from {} to {}", rule.pattern, to_text(*rule.lowest), to_text(*rule.highest));
}

bool is_allowed(const ControlSetting& setting, const std::vector<AllowedControl>& allowed) {
  return std::ranges::any_of(allowed, [&](const AllowedControl& rule) {
    return fits(rule, setting.control->describe()) && is_within(rule, setting.value);
  });
}

// Whether one of the allowed settings has no effect without this one.
bool is_needed(const ControlSetting& setting, const std::vector<ControlSetting>& all,
               const std::vector<AllowedControl>& allowed) {
  return std::ranges::any_of(all, [&](const ControlSetting& other) {
    const auto& needs = other.control->describe().needs;
    const bool needed = std::ranges::any_of(needs, [&](const auto& need) {
      return need.first == setting.control->describe().name && need.second == setting.value;
    });
    return needed && is_allowed(other, allowed);
  });
}

}  // namespace

Result<AllowedControl> parse_allowed(std::string_view text) {
  const auto equals = text.find('=');
  AllowedControl rule{std::string(trim(text.substr(0, equals))), {}, {}};
  const auto wrong = [&](const char* what) {
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\": {}", text, what),
                "write \"gpu/*/power\" or \"gpu/*/power=200W..400W\"");
  };
  if (rule.pattern.empty()) return wrong("names no control");
  if (equals == std::string_view::npos) return rule;
  const auto range = text.substr(equals + 1);
  const auto dots = range.find("..");
  if (dots == std::string_view::npos) return wrong("has no range LOW..HIGH");
  for (const auto unit : {ControlUnit::watts, ControlUnit::hertz}) {
    const auto low = parse_value(range.substr(0, dots), unit), high = parse_value(range.substr(dots + 2), unit);
    if (!low || !high) continue;
    if (number_of(*low) > number_of(*high)) return wrong("has its higher value first");
    rule.lowest = low;
    rule.highest = high;
    return rule;
  }
  return wrong("has no two values of one unit, W or Hz");
}

Result<void> check_allowed(const std::vector<ControlSetting>& settings, const std::vector<AllowedControl>& allowed) {
  for (const auto& setting : settings) {
    if (is_allowed(setting, allowed) || is_needed(setting, settings, allowed)) continue;
    const auto& info = setting.control->describe();
    std::vector<std::string> may;
    for (const auto& rule : allowed)
      if (fits(rule, info)) may.push_back(text_of(rule));
    if (may.empty())
      for (const auto& rule : allowed) may.push_back(text_of(rule));
    return fail(ErrorCode::permission_denied,
                fmt::format("this site does not allow {} = {} to its users", info.name, to_text(setting.value)),
                may.empty() ? "it allows nothing: controls of ergometerd.toml is empty"
                            : fmt::format("it allows: {} (controls of ergometerd.toml)", fmt::join(may, ", ")));
  }
  return {};
}

}  // namespace ergometer::daemon
