#include "store/infer.hpp"

#include <array>

#include "base/number.hpp"

namespace ergometer {
namespace {

struct Suffix {
  std::string_view text;
  Quantity quantity;
  const char* unit;
};
constexpr std::array kSuffixes{Suffix{"_w", Quantity::power, "W"},       Suffix{"_j", Quantity::energy, "J"},
                               Suffix{"_ratio", Quantity::ratio, "1"},   Suffix{"_bytes", Quantity::bytes, "B"},
                               Suffix{"_hz", Quantity::frequency, "Hz"}, Suffix{"_c", Quantity::temperature, "Cel"},
                               Suffix{"_s", Quantity::duration, "s"}};

struct NamedScope {
  std::string_view word;
  Scope scope;
};
constexpr std::array kPlaces{NamedScope{"gpu", Scope::gpu},   NamedScope{"package", Scope::package},
                             NamedScope{"dram", Scope::dram}, NamedScope{"module", Scope::module},
                             NamedScope{"psys", Scope::psys}, NamedScope{"node", Scope::node}};

// "gpu0-samples" is domain gpu/0 of scope gpu; any other name is a domain of its own of scope node.
void place(std::string_view sensor, Channel& channel) {
  channel.domain = std::string(sensor);
  channel.scope = Scope::node;
  for (const auto& [word, scope] : kPlaces) {
    if (!sensor.starts_with(word)) continue;
    std::string_view rest = sensor.substr(word.size());
    std::size_t digits = 0;
    while (digits < rest.size() && is_digit(rest[digits])) ++digits;
    if (digits < rest.size() && rest[digits] != '-') continue;
    if (digits == 0 && scope == Scope::gpu) continue;
    channel.domain = std::string(word);
    if (digits > 0) channel.domain += "/" + std::string(rest.substr(0, digits));
    channel.scope = scope;
    return;
  }
}

}  // namespace

Channel infer_channel(std::string_view sensor, const std::string& column) {
  Channel channel;
  channel.column = column;
  channel.note = "inferred from the column's name";
  std::string_view name = column;
  if (name.ends_with("_total")) {
    channel.behaviour = Behaviour::counter;
    name.remove_suffix(6);
  }
  for (const auto& suffix : kSuffixes) {
    // "_w" alone, or the unit as the whole name ("w"), counts as well.
    if (!name.ends_with(suffix.text) && name != suffix.text.substr(1)) continue;
    channel.quantity = suffix.quantity;
    channel.unit = suffix.unit;
    break;
  }
  place(sensor, channel);
  channel.device = std::string(sensor);
  if (channel.quantity == Quantity::energy) {
    channel.behaviour = Behaviour::counter;
    channel.method = Method::counter;
  } else if (channel.quantity == Quantity::power) {
    channel.method = sensor.ends_with("-samples")                  ? Method::samples
                     : column.find("average") != std::string::npos ? Method::average
                                                                   : Method::integral;
  }
  return channel;
}

}  // namespace ergometer
