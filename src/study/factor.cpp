#include "study/factor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/number.hpp"
#include "base/text.hpp"
#include "device/control.hpp"

namespace ergometer {
namespace {

struct KnownFactor {
  const char* name;
  FactorKind kind;
  const char* unit;
};

constexpr std::array<KnownFactor, 9> kKnownFactors{{{"power_limit", FactorKind::power_limit, "W"},
                                                    {"graphics_clock", FactorKind::graphics_clock, "MHz"},
                                                    {"memory_clock", FactorKind::memory_clock, "MHz"},
                                                    {"cpu_power_limit", FactorKind::cpu_power_limit, "W"},
                                                    {"cpu_frequency", FactorKind::cpu_frequency, "MHz"},
                                                    {"governor", FactorKind::governor, ""},
                                                    {"gpus", FactorKind::gpus, ""},
                                                    {"ranks", FactorKind::ranks, ""},
                                                    {"nodes", FactorKind::nodes, ""}}};

ControlUnit control_unit(FactorKind kind) {
  if (kind == FactorKind::power_limit || kind == FactorKind::cpu_power_limit) return ControlUnit::watts;
  return kind == FactorKind::governor ? ControlUnit::word : ControlUnit::hertz;
}

Result<void> bad_level(const Factor& factor, const std::string& level, const std::string& remedy) {
  return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is no level of {}", level, factor.name), remedy);
}

std::string how_to_write(FactorKind kind) {
  switch (kind) {
    case FactorKind::power_limit:
      return "write watts or a share of the default limit: 200, \"200W\", \"80%\", or \"default\"";
    case FactorKind::cpu_power_limit:
      return "write watts or a share of the design power: 110, \"110W\", \"80%\", or \"default\"";
    default:
      return "write megahertz or a share of the highest: 1200, \"1.2GHz\", \"53%\", or \"default\"";
  }
}

}  // namespace

const std::vector<std::string>& known_factors() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& known : kKnownFactors) all.emplace_back(known.name);
    return all;
  }();
  return names;
}

FactorKind factor_kind(std::string_view name) {
  for (const auto& known : kKnownFactors)
    if (name == known.name) return known.kind;
  return name.find('/') != std::string_view::npos ? FactorKind::control : FactorKind::parameter;
}

std::string factor_unit(FactorKind kind) {
  for (const auto& known : kKnownFactors)
    if (kind == known.kind) return known.unit;
  return {};
}

bool is_control(FactorKind kind) { return kind <= FactorKind::control; }

Result<void> check_level(const Factor& factor, const std::string& level) {
  if (is_control(factor.kind) && level == kDefaultLevel) return {};
  switch (factor.kind) {
    case FactorKind::power_limit:
    case FactorKind::graphics_clock:
    case FactorKind::memory_clock:
    case FactorKind::cpu_power_limit:
    case FactorKind::cpu_frequency: {
      if (level.ends_with('%')) {
        const auto percent = parse_double(std::string_view(level).substr(0, level.size() - 1));
        if (percent && *percent > 0 && *percent <= 1000) return {};
      } else if (const auto value = parse_value(control_value(factor, level), control_unit(factor.kind));
                 value && number_of(*value) > 0) {
        return {};
      }
      return bad_level(factor, level, how_to_write(factor.kind));
    }
    case FactorKind::gpus: {
      const auto count = parse_int(level);
      if ((count && *count >= 0) || !named_gpus(level).empty()) return {};
      return bad_level(factor, level, "write how many, as in 2, or which, as in \"0,2\"");
    }
    case FactorKind::ranks:
    case FactorKind::nodes: {
      const auto count = parse_int(level);
      if (count && *count >= 1) return {};
      return bad_level(factor, level, "write a whole number from 1");
    }
    case FactorKind::governor:
    case FactorKind::control:
    case FactorKind::environment:
    case FactorKind::parameter:
      break;
  }
  return {};
}

std::string control_value(const Factor& factor, const std::string& level) {
  return !factor.unit.empty() && parse_double(level) ? level + factor.unit : level;
}

std::optional<double> level_number(const Factor& factor, const std::string& level) {
  if (factor.kind == FactorKind::gpus) {
    const auto named = named_gpus(level);
    if (!named.empty()) return static_cast<double>(named.size());
  }
  if (const auto number = parse_double(level)) return number;
  if (factor.unit.empty() || level == kDefaultLevel) return std::nullopt;
  const auto value = parse_value(level, control_unit(factor.kind));
  if (!value) return std::nullopt;
  return factor.unit == "MHz" ? number_of(*value) / 1e6 : number_of(*value);
}

std::vector<int> named_gpus(const std::string& level) {
  std::vector<int> gpus;
  if (level.find(',') == std::string::npos) return gpus;
  for (const auto part : split(level, ',')) {
    if (trim(part).empty()) continue;  // "2," is GPU 2 alone
    const auto index = parse_int(trim(part));
    if (!index || *index < 0 || std::ranges::find(gpus, static_cast<int>(*index)) != gpus.end()) return {};
    gpus.push_back(static_cast<int>(*index));
  }
  return gpus;
}

}  // namespace ergometer
