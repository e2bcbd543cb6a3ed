#include "device/slurm/output.hpp"

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer::slurm {
namespace {

constexpr double kNoValue32 = 4294967294.0;  // NO_VAL, and INFINITE is one more
constexpr double kNoValue64 = 1.8e19;        // NO_VAL64 is 2^64 - 2

std::optional<double> known(std::string_view text) {
  const auto value = parse_double(text);
  if (!value || *value <= 0 || *value >= kNoValue64 || *value == kNoValue32 || *value == kNoValue32 + 1)
    return std::nullopt;
  return value;
}

// The word after KEY= anywhere in the text; "" without one.
std::string_view value_of(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const bool begins = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\n' || text[at - 1] == '\t';
    const auto rest = text.substr(at + key.size());
    if (begins && rest.starts_with('=')) return rest.substr(1, rest.find_first_of(" \t\r\n", 1) - 1);
  }
  return {};
}

// The value of a line "KEY   = VALUE ..." up to its next blank.
std::string_view setting_of(std::string_view text, std::string_view key) {
  for (const auto line : split(text, '\n')) {
    const auto equals = line.find('=');
    if (equals == std::string_view::npos || trim(line.substr(0, equals)) != key) continue;
    const auto value = trim(line.substr(equals + 1));
    return value.substr(0, value.find(' '));
  }
  return {};
}

}  // namespace

Config parse_config(std::string_view text) {
  Config config;
  const auto type = setting_of(text, "AcctGatherEnergyType");
  const auto slash = type.rfind('/');
  config.energy_type = std::string(slash == std::string_view::npos ? type : type.substr(slash + 1));
  if (config.energy_type == "(null)") config.energy_type.clear();
  config.node_period_s = known(setting_of(text, "AcctGatherNodeFreq"));
  return config;
}

NodeEnergy parse_node(std::string_view text) {
  return {known(value_of(text, "CurrentWatts")), known(value_of(text, "ConsumedJoules"))};
}

std::optional<double> parse_step(std::string_view text) {
  const auto line = trim(text);
  return line.find('\n') == std::string_view::npos ? known(line) : std::nullopt;
}

}  // namespace ergometer::slurm
